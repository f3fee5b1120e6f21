/* role.h - the roles of a machine in a cluster (docs/cluster.md). */
#pragma once
#include <string.h>

/* In the order of the words of the setting cluster.role. */
enum cluster_role { CLUSTER_ALONE, CLUSTER_NODE, CLUSTER_GATEWAY, CLUSTER_BOTH };

/* Numbers of nodes and gateways come from one sequence: 1 to CLUSTER_NUMBER_MAX. */
enum { CLUSTER_NUMBER_MAX = 32767, CLUSTER_NAME_MAX = 63 };

static inline int cluster_is_gateway(enum cluster_role r)
{
	return r == CLUSTER_GATEWAY || r == CLUSTER_BOTH;
}

static inline int cluster_is_node(enum cluster_role r)
{
	return r == CLUSTER_NODE || r == CLUSTER_BOTH;
}

/* The name of a machine: 1 to 63 of a-z, 0-9, '-' and '.', the first a letter or a digit. */
static inline int cluster_name_is_valid(const char *name)
{
	size_t n = strlen(name);

	return n && n <= CLUSTER_NAME_MAX && *name != '-' && *name != '.' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == n;
}
