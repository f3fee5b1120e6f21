/* nodes.h - the nodes of a gateway, as GET /v1/nodes shows them. */
#pragma once
#include "api/api.h"

json_t *gateway_nodes_json(struct api *a); /* an array, by number */
