/* members.h - which nodes belong to the cluster. A node that `atoll node rm` has removed loses its connections within
 * seconds and gets no new ones, although its certificate is still valid.
 * Owns: the registration of this gateway with the coordinator, the last list of nodes. */
#pragma once
#include "cluster/tunnel.h"
#include "coordinator/coordinator.h"

struct gateway_members;

/* Sets the hook `permitted` of t. The coordinator and the tunnels live longer. */
struct gateway_members *gateway_members_new(struct loop *l, struct coordinator *c,
					    struct tunnels *t, unsigned number, const char *address,
					    const char *version);
/* No further requests: another server takes over. Its last list stays in force. */
void gateway_members_stop(struct gateway_members *m); /* allowed on NULL */
void gateway_members_free(
	struct gateway_members *m); /* allowed on NULL; after coordinator_free() */
