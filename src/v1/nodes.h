/* nodes.h - the nodes of a cluster, on a gateway. */
#pragma once
#include "api/api.h"

void nodes_list(struct call *c); /* GET /v1/nodes */
