/* node_leases.h - the lease of this node: acknowledged heartbeats extend the time for which boxes with on_loss may run,
 * and a hello with a higher epoch ends what was restarted elsewhere (docs/cluster.md, rules 2, 8 and 9).
 * Owns:         the lease, the epoch of the node in the store, the file last_lease. Sets fleet.lease.
 * Does not own: the tunnels, boxes. */
#pragma once
#include "api/api.h"
#include "cluster/tunnel_node.h"

struct node_leases;

/* folder: of the store. */
must_check int node_leases_new(struct node_leases **out, struct api *a, const char *folder,
			       struct err *e);
/* The tunnels, when they exist. */
void node_leases_start(struct node_leases *x, struct tunnel_client *client);
void node_leases_free(struct node_leases *x); /* allowed on NULL */

/* Hooks of the tunnels. */
void node_leases_greeted(struct node_leases *x, unsigned gateway, uint32_t number, uint64_t epoch,
			 const json_t *owned);
void node_leases_acknowledged(struct node_leases *x, unsigned gateway, uint64_t sent_ms);
void node_leases_closed(struct node_leases *x, unsigned gateway);

uint64_t node_leases_left_ms(const struct node_leases *x);
