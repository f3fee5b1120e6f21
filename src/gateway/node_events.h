/* node_events.h - events of the nodes of a cluster: node.up, node.unreachable, node.lost, node.gone. They belong to the
 * team `default`, whose members operate the cluster.
 * Owns: nothing. */
#pragma once
#include "gateway/gateway.h"

/* For gateway_lease_hooks.changed; user: struct gateway. */
void node_events_changed(void *user, const struct node_status *now, enum node_state was,
			 uint64_t was_ms);
