/* view.h - the state of a cluster as one read of the coordinator shows it. Plain data. */
#pragma once
#include <stdint.h>

enum { VIEW_NAME = 64 };

struct view_gateway {
	int number;
	int64_t renewals;    /* changes with each renewal */
	int64_t incarnation; /* changes when a process registers */
};
struct view_tunnel { /* that is up */
	int node, gateway;
	int64_t serial;
};
struct view_node {
	int number;
	int64_t epoch;
	int64_t forgotten; /* names that were claimed with this epoch or an older one are free */
	int lost;
	char name[VIEW_NAME]; /* of the machine; cut */
};

struct view { /* borrowed */
	const struct view_gateway *gateways;
	const struct view_tunnel *tunnels;
	const struct view_node *nodes;
	unsigned ngateways, ntunnels, nnodes;
};
