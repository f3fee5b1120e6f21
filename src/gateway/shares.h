/* shares.h - the limit of boxes of a team over all gateways: each gateway has a share of what is left of it, and uses it
 * without a question to the database (cluster/quota_share.h).
 * Owns: the shares of this gateway, the requests for more.
 *
 *   database: live boxes of the team + shares of all gateways <= limit
 *   gateway:  creations in progress <= its share; a box that is stored in the directory is a live box, no longer a part of
 *             the share
 *
 * A row of the directory is written before its unit of the share is given up, so a box always counts at least once. */
#pragma once
#include "api/api.h"

enum { SHARES_ANSWER_MS = 1000, SHARES_KEEP_MS = 3000000 };

struct cluster_client;
struct gateway_shares;

/* number: of this gateway. */
must_check int gateway_shares_new(struct gateway_shares **out, struct loop *l,
				  struct cluster_client *engines, unsigned number, struct err *e);
void gateway_shares_free(struct gateway_shares *s); /* allowed on NULL; after the last request */

struct shares_ask { /* memory of the caller, zeroed */
	/* Called once, from the loop, unless cancelled. 1: one box may be created. 0: the limit is reached. -1: the
	 * share is used up, and the database does not answer. */
	void (*done)(struct shares_ask *a, int result);
	struct shares_ask *next;
	struct shares_team *team; /* NULL: not in progress */
	uint64_t until_ms;
};
/* 1: one more box may be created. 0: done() follows. */
int shares_take(struct gateway_shares *s, struct shares_ask *a, const char *team, uint64_t limit);
void shares_cancel(struct shares_ask *a); /* fine on a zeroed or finished one */
void shares_release(struct gateway_shares *s, const char *team); /* no box was created */
void shares_spend(struct gateway_shares *s, const char *team);   /* its row is in the directory */
