/* shared_rows.h - what a team sets once for all machines of a cluster: network rules ("network"), the policy of its
 * pipelines ("policy"), webhooks ("webhook") and secrets ("secret"). Gateways exchange these rows as they do keys and
 * teams (account_changes.h), and send them to nodes (gateway/shared_rows.h); a node remembers which rows came so.
 *
 * A row is a JSON object, {"team", "sealed": hexadecimal, ...}. An id is the team, the id of a webhook, or "team/name" of
 * a secret. */
#pragma once
#include "store/store.h"

enum { STORE_SHARED_ID = 2 * STORE_NAME + 1 };

int store_shared_is_kind(const char *kind);

struct store_shared_row {
	char kind[8];
	char id[STORE_SHARED_ID + 1];
	char *row; /* JSON; NULL: there is none */
};
struct store_shared_rows {
	struct store_shared_row *v;
	unsigned n;
};
void store_shared_rows_fini(struct store_shared_rows *l);

/* *out: to free(); NULL: there is no such row. */
must_check int store_shared_get(struct store *s, const char *kind, const char *id, char **out,
				struct err *e);
/* All but secrets. */
must_check int store_shared_list(struct store *s, struct store_shared_rows *out, struct err *e);
/* Inserts or replaces it; row NULL: removes it. What belongs to this machine (the figures of a webhook) stays. A webhook
 * that is new here, or enabled again, begins with the next event. ERR_NOT_FOUND: no such team. */
must_check int store_shared_put(struct store *s, const char *kind, const char *id, const char *row,
				struct err *e);

/* ---- on a node ---- */

/* The row came from a gateway at that time. */
must_check int store_shared_mark(struct store *s, const char *kind, const char *id, int64_t now_ns,
				 struct err *e);
/* Rows that came from a gateway: secrets with version and time of the last change as row, or all others without row. */
must_check int store_shared_marked(struct store *s, int secrets, struct store_shared_rows *out,
				   struct err *e);
/* Removes the row and the mark. */
must_check int store_shared_drop(struct store *s, const char *kind, const char *id, struct err *e);
/* Removes secrets that came before that time and that no box and no schedule of this machine names. */
must_check int store_shared_prune(struct store *s, int64_t before_ns, struct err *e);
