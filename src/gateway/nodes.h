/* nodes.h - the nodes of a gateway, as GET /v1/nodes shows them. */
#pragma once
#include "api/api.h"
#include "cluster/tunnel.h"

json_t *gateway_node_json(const struct tunnel_node *n);
/* By number or name; NULL: none of the nodes that have been connected. */
struct tunnel_node *gateway_find_node(struct tunnels *t, const char *which);
/* For GET /v1/scale: {"ready", "wanted", "drain", "reason"}. */
json_t *gateway_scale_json(struct api *a);
unsigned gateway_nodes_wanted(struct gateway *g);
json_t *gateway_nodes_json(struct api *a); /* an array, by number */
