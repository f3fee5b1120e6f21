/* role.h - the roles of a machine in a cluster (docs/cluster.md). */
#pragma once

/* In the order of the words of the setting cluster.role. */
enum cluster_role { CLUSTER_ALONE, CLUSTER_NODE, CLUSTER_GATEWAY, CLUSTER_BOTH };

/* Numbers of nodes and gateways come from one sequence: 1 to CLUSTER_NUMBER_MAX. */
enum { CLUSTER_NUMBER_MAX = 32767 };

static inline int cluster_is_gateway(enum cluster_role r)
{
	return r == CLUSTER_GATEWAY || r == CLUSTER_BOTH;
}

static inline int cluster_is_node(enum cluster_role r)
{
	return r == CLUSTER_NODE || r == CLUSTER_BOTH;
}
