/* grants.h - limits of executions, output and CPU time of teams over all nodes: a gateway gives each node a part of what is left
 * (PUT /cluster/quota), and the node counts, because batches, schedules and cells start programs, too.
 * Owns: what this gateway knows of the parts of nodes, the requests for more.
 *
 *   database: the parts of all nodes <= limit      raised before the node gets more, lowered after the node has less
 *   node:     starts programs while it has used less than its part */
#pragma once
#include "api/quota.h"

enum { GRANTS_ANSWER_MS = 1500 };

struct cluster_client;
struct gateway_grants;
struct grants_entry;
struct tunnels;

struct gateway_grants *gateway_grants_new(struct api *a, struct cluster_client *engines,
					  struct tunnels *tunnels);
void gateway_grants_free(struct gateway_grants *g); /* allowed on NULL; after the last request */

struct grants_ask { /* memory of the caller, zeroed */
	/* Called once, from the loop, unless cancelled. 1: the node decides. 0: it has no part, and the database does not
	 * answer. */
	void (*done)(struct grants_ask *a, int result);
	struct grants_ask *next;
	struct grants_entry *entry; /* NULL: not in progress */
	uint64_t until_ms;
};
/* A request that may start a program at this node. 1: the node has a part, or there is no limit. 0: done() follows. */
int grants_take(struct gateway_grants *g, struct grants_ask *a, const char *team, unsigned node);
void grants_cancel(struct grants_ask *a); /* fine on a zeroed or finished one */
