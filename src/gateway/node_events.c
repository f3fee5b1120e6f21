/* node_events.c - see node_events.h. */
#include "gateway/node_events.h"

#include <stdio.h>

void node_events_changed(void *user, const struct node_status *now, enum node_state was,
			 uint64_t was_ms)
{
	struct gateway *g = user;
	char type[32];

	snprintf(type, sizeof(type), "node.%s", node_state_name(now->state));
	fleet_emit(&g->api->fleet, "default", "", type,
		   json_pack("{sI ss ss sI}", "node", (json_int_t)now->number, "name", now->name,
			     "was", node_state_name(was), "after_ms", (json_int_t)was_ms));
}
