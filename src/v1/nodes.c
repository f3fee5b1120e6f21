/* nodes.c - GET /v1/nodes. See nodes.h. */
#include "v1/nodes.h"

void nodes_list(struct call *c)
{
	if (!c->api->nodes)
		call_error(c, 404, "not_found", "this daemon is not a gateway: it has no nodes",
			   NULL, "ask a daemon with cluster.role = gateway");
	else
		call_list(c, c->api->nodes(c->api), NULL);
}
