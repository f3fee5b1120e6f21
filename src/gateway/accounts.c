/* accounts.c - see accounts.h. */
#include "gateway/accounts.h"
#include "api/auth.h"
#include "api/quota.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "coordinator/cluster_client.h"
#include "coordinator/queries.h"
#include "store/account_changes.h"

#include <stdlib.h>
#include <string.h>

enum {
	ACCOUNTS_BATCH = 200,       /* rows that are sent at once */
	ACCOUNTS_PAGE = 500,        /* rows of an answer at most: queries.c */
	ACCOUNTS_GAP_MS = 60000,    /* after a longer interruption all rows are read again ... */
	ACCOUNTS_ALL_MS = 600000,   /* ... and from time to time */
	ACCOUNTS_TRIM_MS = 3600000, /* removal of old positions */
};

/* Teams first: other rows belong to one. */
static const char *const accounts_kinds[] = { "team",   "key",     "network",
					      "policy", "webhook", "secret" };
enum accounts_step {
	ACCOUNTS_TEAMS, /* and the other kinds */
	ACCOUNTS_PUSH = ARRAY_LEN(accounts_kinds),
	ACCOUNTS_FOLLOW,
	ACCOUNTS_TRIM
};

struct gateway_accounts {
	struct api *api;
	struct cluster_client *engines;
	struct cluster_request request;
	struct timer clock;
	enum accounts_step step; /* of the request in progress, or the next one */
	int is_busy, changed_again;
	char after[STORE_SHARED_ID + 1]; /* before PUSH: the last row of the kind that was read */
	int has_read;                    /* all rows, since this server started */
	char xid[24], seq[24];           /* position in the changes; "": not known */
	uint64_t answered_ms, all_ms, trimmed_ms;
	struct store_accounts sent;
	int was_refused;
};

static void accounts_next(struct gateway_accounts *x, uint64_t after_ms)
{
	if (!timer_pending(&x->clock) || after_ms == 0)
		timer_set(&x->clock, after_ms);
}

/* ---- rows of other gateways ---- */

static void accounts_apply(struct gateway_accounts *x, const json_t *rows)
{
	unsigned changed = 0;
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		int removed = query_int(row, 2) != 0;
		struct err e;
		int rc = store_account_apply(x->api->store, query_text(row, 0), query_text(row, 1),
					     removed ? NULL : query_text(row, 3), &e);

		changed += rc > 0;
		if (rc > 0 && strcmp(query_text(row, 0), "team") == 0)
			quota_changed(x->api, query_text(row, 1));
		if (rc > 0 && x->api->shared_row_came)
			x->api->shared_row_came(x->api, query_text(row, 0), query_text(row, 1));
		if (rc < 0)
			log_error("not taken over from the database of the cluster", LOG_E(&e));
	}
	if (changed)
		auth_forget(x->api);
}

static void accounts_got_page(struct gateway_accounts *x, const json_t *answer)
{
	const json_t *rows = query_rows(answer, 1);
	size_t n = json_array_size(rows);

	if (!x->xid[0]) {
		snprintf(x->xid, sizeof(x->xid), "%s",
			 query_text(json_array_get(query_rows(answer, 0), 0), 0));
		snprintf(x->seq, sizeof(x->seq), "0");
	}
	accounts_apply(x, rows);
	if (n) {
		snprintf(x->after, sizeof(x->after), "%s",
			 query_text(json_array_get(rows, n - 1), 1));
		return;
	}
	x->after[0] = 0;
	x->step++;
	x->has_read |= x->step == ACCOUNTS_PUSH;
	x->all_ms = loop_now_ms();
}

static void accounts_got_changes(struct gateway_accounts *x, const json_t *answer)
{
	const json_t *rows = query_rows(answer, 1);
	const json_t *last = json_array_get(rows, json_array_size(rows) - 1);
	const char *now = query_text(json_array_get(query_rows(answer, 0), 0), 0);

	accounts_apply(x, rows);
	if (last) {
		snprintf(x->xid, sizeof(x->xid), "%s", query_text(last, 4));
		snprintf(x->seq, sizeof(x->seq), "%s", query_text(last, 5));
	}
	x->changed_again |= json_array_size(rows) >= ACCOUNTS_PAGE;
	/* The database was restored from a backup: its transactions have lower numbers. */
	x->step = strtoull(now, NULL, 10) < strtoull(x->xid, NULL, 10) ? ACCOUNTS_TEAMS
								       : ACCOUNTS_PUSH;
}

/* ---- rows of this gateway ---- */

static void accounts_got_push(struct gateway_accounts *x)
{
	struct err e;

	for (unsigned i = 0; i < x->sent.n; i++)
		if (store_account_sent(x->api->store, &x->sent.v[i], &e) < 0)
			log_error("changed keys and teams", LOG_E(&e));
	store_accounts_fini(&x->sent);
	x->step = ACCOUNTS_FOLLOW;
}

static json_t *accounts_batch(const struct store_accounts *l)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < l->n; i++)
		json_array_append_new(all,
				      json_pack("{s:s, s:s, s:b, s:o}", "kind", l->v[i].kind, "id",
						l->v[i].id, "verify", l->v[i].verify, "row",
						l->v[i].row ? json_loads(l->v[i].row, 0, NULL)
							    : json_null()));
	return all;
}

static void accounts_answered(struct cluster_request *r, const json_t *answer, const struct err *e);

static void accounts_send(struct gateway_accounts *x, const char *name, json_t *take_params)
{
	x->is_busy = 1;
	x->request.done = accounts_answered;
	query_request(x->engines, &x->request, name, take_params);
}

/* 0: nothing has changed. */
static int accounts_push(struct gateway_accounts *x)
{
	char *text;
	json_t *all;
	struct err e;

	if (store_account_pending(x->api->store, ACCOUNTS_BATCH, &x->sent, &e) < 0) {
		log_error("changed keys and teams", LOG_E(&e));
		return 0;
	}
	if (!x->sent.n)
		return 0;
	all = accounts_batch(&x->sent);
	text = json_dumps(all, JSON_COMPACT);
	accounts_send(x, "accounts_push", json_pack("[s]", text));
	free(text);
	json_decref(all);
	return 1;
}

/* ---- the exchange ---- */

static void accounts_read_all(struct gateway_accounts *x)
{
	struct err e;

	x->step = ACCOUNTS_TEAMS;
	x->after[0] = x->xid[0] = 0;
	if (store_account_verify_all(x->api->store, &e) < 0)
		log_error("keys and teams", LOG_E(&e));
}

static int accounts_is_late(uint64_t since, uint64_t limit)
{
	return loop_now_ms() - since > limit;
}

static void accounts_begin(struct timer *t)
{
	struct gateway_accounts *x = loop_owner(t, struct gateway_accounts, clock);

	if (x->is_busy)
		return;
	if (x->step >= ACCOUNTS_PUSH && (accounts_is_late(x->answered_ms, ACCOUNTS_GAP_MS) ||
					 accounts_is_late(x->all_ms, ACCOUNTS_ALL_MS)))
		accounts_read_all(x);
	else if (x->step == ACCOUNTS_TEAMS && !x->after[0])
		accounts_read_all(x);
	if (x->step >= ACCOUNTS_PUSH && accounts_is_late(x->trimmed_ms, ACCOUNTS_TRIM_MS)) {
		x->trimmed_ms = loop_now_ms();
		x->step = ACCOUNTS_TRIM;
	}
	if (x->step == ACCOUNTS_PUSH && accounts_push(x))
		return;
	if (x->step == ACCOUNTS_TRIM)
		accounts_send(x, "accounts_trim", json_array());
	else if (x->step >= ACCOUNTS_PUSH) {
		x->step = ACCOUNTS_FOLLOW;
		accounts_send(x, "accounts_changed", json_pack("[s, s]", x->xid, x->seq));
	} else
		accounts_send(x, "accounts_page",
			      json_pack("[s, s]", accounts_kinds[x->step], x->after));
}

/* An answer that did not come changes nothing: the same step is repeated. */
static void accounts_answered(struct cluster_request *r, const json_t *answer, const struct err *e)
{
	struct gateway_accounts *x = loop_owner(r, struct gateway_accounts, request);
	int more = x->step < ACCOUNTS_FOLLOW;

	x->is_busy = 0;
	if (e) {
		x->changed_again = 0;
		if (e->kind != ERR_SYS && !x->was_refused)
			log_error(
				"keys, teams and rows of teams are not exchanged with the other gateways",
				LOG_E(e));
		x->was_refused = 1;
		store_accounts_fini(&x->sent);
		if (x->step >= ACCOUNTS_PUSH)
			x->step = ACCOUNTS_PUSH;
		accounts_next(x, ACCOUNTS_MS);
		return;
	}
	x->was_refused = 0;
	x->answered_ms = loop_now_ms();
	if (x->step == ACCOUNTS_PUSH)
		accounts_got_push(x);
	else if (x->step == ACCOUNTS_FOLLOW)
		accounts_got_changes(x, answer);
	else if (x->step == ACCOUNTS_TRIM)
		x->step = ACCOUNTS_PUSH;
	else
		accounts_got_page(x, answer);
	accounts_next(x, more || x->changed_again ? 0 : ACCOUNTS_MS);
	x->changed_again = 0;
}

static int accounts_changed(struct api *a)
{
	struct gateway_accounts *x = a->accounts;

	if (x->is_busy)
		x->changed_again = 1;
	else if (x->step >= ACCOUNTS_PUSH) {
		x->step = ACCOUNTS_PUSH;
		accounts_next(x, 0);
	}
	return !accounts_is_late(x->answered_ms, 4 * ACCOUNTS_MS);
}

int gateway_accounts_are_fresh(const struct gateway_accounts *x)
{
	return x->has_read && !accounts_is_late(x->answered_ms, 8 * ACCOUNTS_MS);
}

struct gateway_accounts *gateway_accounts_new(struct api *a, struct cluster_client *engines)
{
	struct gateway_accounts *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	x->api = a;
	x->engines = engines;
	x->trimmed_ms = loop_now_ms();
	timer_init(&x->clock, a->loop, accounts_begin);
	timer_set(&x->clock, 0);
	a->accounts = x;
	a->accounts_changed = accounts_changed;
	return x;
}

void gateway_accounts_free(struct gateway_accounts *x)
{
	if (!x)
		return;
	x->api->accounts = NULL;
	x->api->accounts_changed = NULL;
	cluster_client_cancel(&x->request);
	timer_fini(&x->clock);
	store_accounts_fini(&x->sent);
	free(x);
}
