/* nodes.h - the nodes of a cluster: all of them on a gateway, itself on a node. */
#pragma once
#include "api/api.h"

void nodes_list(struct call *c);  /* GET /v1/nodes */
void nodes_scale(struct call *c); /* GET /v1/scale */
void nodes_show(struct call *c);  /* GET /v1/nodes/{node} */
/* POST /v1/nodes/{node}/drain and /undrain, on the node itself; a gateway forwards them. */
extern const struct field nodes_drain_fields[];
void nodes_drain(struct call *c);
void nodes_undrain(struct call *c);
