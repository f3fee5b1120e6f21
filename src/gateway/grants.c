/* grants.c - see grants.h. One step of an entry at a time:
 *
 *   raise (database) -> nothing left: lower the part of another node, then the database, and raise again -> tell the node */
#include "gateway/grants.h"
#include "base/log.h"
#include "coordinator/cluster_client.h"
#include "coordinator/queries.h"
#include "gateway/node_request.h"
#include "gateway/restart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	GRANTS_TICK_MS = 100,
	GRANTS_LOOK_MS = 500,     /* how often a node in use is asked what it has used */
	GRANTS_ACTIVE_MS = 60000, /* after the last request */
	GRANTS_EMPTY_MS = 1000,   /* after nothing was left */
	GRANTS_RETRY_MS = 250,    /* after an answer that did not come */
	GRANTS_NODE_MS = 1000,
	GRANTS_OTHERS = 8,
	GRANTS_TRIES = 3,
};

/* A rest of at most this much is given as a whole. */
static const uint64_t grants_whole[STORE_RESOURCES] = {
	[STORE_EXECUTIONS] = 16, [STORE_OUTPUT] = 64 << 10, [STORE_COMPUTE] = 1000
};

struct grants_part {
	uint64_t limit; /* 0: none */
	int32_t period; /* of the amount; 0: to be asked for */
	uint64_t amount, used, gain;
	int64_t version;
	uint64_t empty_ms; /* nothing was left until then */
	int is_had;        /* the node has a part of an earlier limit */
};

struct grants_entry {
	struct grants_entry *next;
	struct gateway_grants *all;
	char team[STORE_NAME + 1];
	unsigned node;
	struct grants_part parts[STORE_RESOURCES];
	uint64_t sent,
		sent_before; /* requests since the node was asked; before the request in progress */
	uint64_t used_ms, looked_ms, rest_ms;
	struct grants_ask *asks, **end;

	/* The step in progress. */
	int is_busy;
	enum store_resource resource;
	struct cluster_request query;
	struct node_request request;
	struct {
		unsigned node;
		int64_t version;
	} others[GRANTS_OTHERS];
	unsigned nothers, other;
	int has_lowered;
	unsigned tries; /* parts of other nodes that had changed meanwhile */
};

struct gateway_grants {
	struct api *api;
	struct cluster_client *engines;
	struct tunnels *tunnels;
	struct grants_entry *entries;
	struct timer tick;
};

static struct grants_entry *grants_find(struct gateway_grants *g, const char *team, unsigned node)
{
	struct grants_entry *e = g->entries;

	while (e && (e->node != node || strcmp(e->team, team) != 0))
		e = e->next;
	return e;
}

static struct grants_entry *grants_add(struct gateway_grants *g, const char *team, unsigned node)
{
	struct grants_entry *e = calloc(1, sizeof(*e));

	if (!e)
		abort();
	*e = (struct grants_entry){ .next = g->entries, .all = g, .node = node };
	snprintf(e->team, sizeof(e->team), "%s", team);
	e->end = &e->asks;
	g->entries = e;
	return e;
}

/* ---- what is needed ---- */

static int grants_is_used_up(const struct grants_entry *e, unsigned r)
{
	const struct grants_part *p = &e->parts[r];

	if (!p->limit)
		return 0;
	return p->period != quota_period(r) ||
	       p->used + (r == STORE_EXECUTIONS ? e->sent + 1 : 1) > p->amount;
}

/* Half of what it got last is used, or it has no part of this period. */
static int grants_is_low(const struct grants_entry *e, unsigned r, uint64_t now)
{
	const struct grants_part *p = &e->parts[r];
	uint64_t used = p->used + (r == STORE_EXECUTIONS ? e->sent : 0);

	return p->limit && p->empty_ms <= now &&
	       (p->period != quota_period(r) || used + p->gain / 2 >= p->amount);
}

/* The resource without which no request is sent; STORE_RESOURCES: none. */
static unsigned grants_needed(const struct grants_entry *e, uint64_t now)
{
	for (unsigned r = 0; r < STORE_RESOURCES; r++)
		if (e->parts[r].empty_ms <= now && grants_is_used_up(e, r))
			return r;
	return STORE_RESOURCES;
}

static int grants_has_news(const struct grants_entry *e)
{
	for (unsigned r = 0; r < STORE_RESOURCES; r++)
		if (!e->parts[r].limit && e->parts[r].is_had)
			return 1; /* there is no limit any longer */
	return 0;
}

/* ---- callers that wait ---- */

static void grants_give(struct grants_entry *e, int result)
{
	struct grants_ask *a = e->asks;

	e->asks = a->next;
	if (!e->asks)
		e->end = &e->asks;
	a->entry = NULL;
	e->sent += result > 0;
	a->done(a, result);
}

/* 1: the node can judge by itself: it knows a part of each limit in this period. */
static int grants_node_knows(const struct grants_entry *e)
{
	for (unsigned r = 0; r < STORE_RESOURCES; r++)
		if (e->parts[r].limit && e->parts[r].period != quota_period(r))
			return 0;
	return 1;
}

/* ---- the node ---- */

static void grants_next(struct grants_entry *e);

static void grants_learn(struct grants_entry *e, const char *body, size_t n)
{
	json_t *doc = json_loadb(body, n, JSON_REJECT_DUPLICATES, NULL);

	for (unsigned r = 0; r < STORE_RESOURCES; r++) {
		const json_t *one = json_object_get(doc, store_resource_name(r));
		json_int_t used = json_integer_value(json_object_get(one, "used")),
			   amount = json_integer_value(json_object_get(one, "amount"));

		e->parts[r].used = used > 0 ? (uint64_t)used : 0;
		/* Another gateway has lowered it meanwhile: the next request asks for more. */
		if (amount >= 0 && (uint64_t)amount < e->parts[r].amount)
			e->parts[r].amount = (uint64_t)amount;
	}
	json_decref(doc);
}

static void grants_told(struct node_request *x, int status, const char *body, size_t n,
			const char *why)
{
	struct grants_entry *e = loop_owner(x, struct grants_entry, request);

	(void)why;
	e->is_busy = 0;
	e->looked_ms = loop_now_ms();
	if (status == 200) {
		grants_learn(e, body, n);
		e->sent -= e->sent_before;
		for (unsigned r = 0; r < STORE_RESOURCES; r++)
			e->parts[r].is_had = e->parts[r].limit > 0;
		grants_next(e);
		return;
	}
	e->rest_ms = loop_now_ms() + GRANTS_RETRY_MS;
	while (e->asks) /* the request itself finds out that the node cannot be reached */
		grants_give(e, 1);
}

static json_t *grants_part_json(const struct grants_part *p, unsigned r, int64_t version, int lower)
{
	return json_pack("{s:s, s:I, s:i, s:I, s:I, s:b}", "resource", store_resource_name(r),
			 "limit", (json_int_t)p->limit, "period", (int)p->period, "amount",
			 (json_int_t)p->amount, "version", (json_int_t)version, "lower", lower);
}

static void grants_put(struct grants_entry *e, unsigned node, json_t *take_grants,
		       void (*done)(struct node_request *x, int status, const char *body, size_t n,
				    const char *why))
{
	json_t *doc = json_pack("{s:o}", "grants", take_grants);
	char *text = json_dumps(doc, JSON_COMPACT), identity[128];

	if (!text)
		abort();
	restart_identity(e->team, identity);
	e->is_busy = 1;
	e->request = (struct node_request){ .done = done };
	node_request_send(&e->request, e->all->tunnels, e->all->api->loop, node,
			  &(struct node_request_what){ .method = "PUT",
						       .target = "/cluster/quota",
						       .identity = identity,
						       .body = text,
						       .n = strlen(text) },
			  GRANTS_NODE_MS);
	free(text);
	json_decref(doc);
}

/* Its parts; the answer has what it has used. */
static void grants_tell(struct grants_entry *e)
{
	json_t *list = json_array();

	for (unsigned r = 0; r < STORE_RESOURCES; r++) {
		const struct grants_part *p = &e->parts[r];

		if (p->limit ? p->period > 0 : p->is_had)
			json_array_append_new(list, grants_part_json(p, r, p->version, 0));
	}
	e->sent_before = e->sent;
	grants_put(e, e->node, list, grants_told);
}

/* ---- the part of another node ---- */

static void grants_raise(struct grants_entry *e, enum store_resource r);

static void grants_lower(struct grants_entry *e);

static void grants_stored_less(struct cluster_request *q, const json_t *answer,
			       const struct err *err)
{
	struct grants_entry *e = loop_owner(q, struct grants_entry, query);

	e->has_lowered |= !err && json_array_size(query_rows(answer, 1)) > 0;
	if (!err && !e->has_lowered && e->tries++ < GRANTS_TRIES) {
		grants_raise(
			e,
			e->resource); /* it may have been raised meanwhile: with its new version */
		return;
	}
	e->other++;
	grants_lower(e);
}

static void grants_lowered(struct node_request *x, int status, const char *body, size_t n,
			   const char *why)
{
	struct grants_entry *e = loop_owner(x, struct grants_entry, request), *other;
	const char *name = store_resource_name(e->resource);
	json_t *doc = status == 200 ? json_loadb(body, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
	json_t *amount = json_object_get(json_object_get(doc, name), "amount");
	char period[12], node[12], version[24], text[24];

	(void)why;
	if (!json_is_integer(amount)) { /* what it has counts as used */
		json_decref(doc);
		e->other++;
		grants_lower(e);
		return;
	}
	other = grants_find(e->all, e->team, e->others[e->other].node);
	if (other)
		other->parts[e->resource].period =
			0; /* asks for its part before the next request */
	snprintf(period, sizeof(period), "%d", e->parts[e->resource].period);
	snprintf(node, sizeof(node), "%u", e->others[e->other].node);
	snprintf(version, sizeof(version), "%lld", (long long)e->others[e->other].version);
	snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(amount));
	json_decref(doc);
	e->query.done = grants_stored_less;
	query_request(e->all->engines, &e->query, "grant_lower",
		      json_pack("[s, s, s, s, s, s]", e->team, name, period, node, version, text));
}

static void grants_lower(struct grants_entry *e)
{
	struct grants_part *p = &e->parts[e->resource];

	if (e->has_lowered) {
		grants_raise(e, e->resource);
		return;
	}
	if (e->other == e->nothers) {
		p->empty_ms = loop_now_ms() + GRANTS_EMPTY_MS;
		grants_tell(e);
		return;
	}
	grants_put(e, e->others[e->other].node,
		   json_pack("[o]",
			     grants_part_json(p, e->resource, e->others[e->other].version + 1, 1)),
		   grants_lowered);
}

/* ---- the database ---- */

static void grants_read_others(struct grants_entry *e, const json_t *rows)
{
	const json_t *row;
	size_t i;

	e->nothers = e->other = 0;
	json_array_foreach(rows, i, row)
	{
		if (e->nothers == GRANTS_OTHERS)
			return;
		e->others[e->nothers].node = (unsigned)query_int(row, 0);
		e->others[e->nothers++].version = query_int(row, 1);
	}
}

static void grants_raised(struct cluster_request *q, const json_t *answer, const struct err *err)
{
	struct grants_entry *e = loop_owner(q, struct grants_entry, query);
	struct grants_part *p = &e->parts[e->resource];
	const json_t *row = err ? NULL : json_array_get(query_rows(answer, 3), 0);

	if (!row) {
		e->is_busy = 0;
		e->rest_ms = loop_now_ms() + GRANTS_RETRY_MS;
		return; /* callers wait until their time has expired */
	}
	p->amount = (uint64_t)query_int(row, 0);
	p->version = query_int(row, 1);
	p->period = quota_period(e->resource);
	p->gain = p->amount > p->used ? p->amount - p->used : 0;
	if (grants_is_used_up(e, e->resource) && !e->has_lowered) {
		grants_read_others(e, query_rows(answer, 4));
		grants_lower(e);
		return;
	}
	if (grants_is_used_up(e, e->resource))
		p->empty_ms = loop_now_ms() + GRANTS_EMPTY_MS;
	grants_tell(e);
}

static void grants_raise(struct grants_entry *e, enum store_resource r)
{
	const struct grants_part *p = &e->parts[r];
	char period[12], node[12], used[24], limit[24], whole[24];

	e->is_busy = 1;
	e->resource = r;
	snprintf(period, sizeof(period), "%d", quota_period(r));
	snprintf(node, sizeof(node), "%u", e->node);
	snprintf(used, sizeof(used), "%llu",
		 (unsigned long long)(p->used + (r == STORE_EXECUTIONS ? e->sent : 0)));
	snprintf(limit, sizeof(limit), "%llu", (unsigned long long)p->limit);
	snprintf(whole, sizeof(whole), "%llu", (unsigned long long)grants_whole[r]);
	e->query.done = grants_raised;
	query_request(e->all->engines, &e->query, "grant_raise",
		      json_pack("[s, s, s, s, s, s, s]", e->team, store_resource_name(r), period,
				node, used, limit, whole));
}

/* ---- steps ---- */

/* After a step, or with a new caller. */
static void grants_next(struct grants_entry *e)
{
	uint64_t now = loop_now_ms();
	unsigned r;

	if (e->is_busy || e->rest_ms > now)
		return;
	while ((r = grants_needed(e, now)) == STORE_RESOURCES && e->asks && !grants_has_news(e))
		grants_give(e, 1);
	if (!e->asks)
		return;
	e->has_lowered = 0;
	e->tries = 0;
	if (r < STORE_RESOURCES)
		grants_raise(e, r);
	else
		grants_tell(e);
}

static void grants_look(struct grants_entry *e, uint64_t now)
{
	while (e->asks && e->asks->until_ms <= now)
		grants_give(e, grants_node_knows(e));
	grants_next(e);
	if (e->is_busy || e->rest_ms > now || !e->used_ms || now - e->used_ms > GRANTS_ACTIVE_MS)
		return;
	for (unsigned r = 0; r < STORE_RESOURCES; r++)
		if (grants_is_low(e, r, now)) {
			e->has_lowered =
				1; /* no other node has less because of what may be needed */
			grants_raise(e, r);
			return;
		}
	if (now - e->looked_ms >= GRANTS_LOOK_MS)
		grants_tell(e);
}

static void grants_tick(struct timer *t)
{
	struct gateway_grants *g = loop_owner(t, struct gateway_grants, tick);

	for (struct grants_entry *e = g->entries; e; e = e->next)
		grants_look(e, loop_now_ms());
	timer_set(&g->tick, GRANTS_TICK_MS);
}

/* ---- callers ---- */

static int grants_set_limits(struct grants_entry *e, const uint64_t limits[STORE_RESOURCES])
{
	int is_limited = 0;

	for (unsigned r = 0; r < STORE_RESOURCES; r++) {
		struct grants_part *p = &e->parts[r];

		if (p->limit != limits[r]) {
			p->limit = limits[r];
			p->period = 0;
			p->empty_ms = 0;
		}
		is_limited |= p->limit || p->is_had;
	}
	return is_limited;
}

int grants_take(struct gateway_grants *g, struct grants_ask *a, const char *team, unsigned node)
{
	uint64_t limits[STORE_RESOURCES], now = loop_now_ms();
	int is_limited = quota_run_limits(g->api, team, limits);
	struct grants_entry *e = grants_find(g, team, node);

	if (!e && !is_limited)
		return 1;
	if (!e)
		e = grants_add(g, team, node);
	if (!grants_set_limits(e, limits))
		return 1;
	for (struct grants_entry *x = g->entries; x; x = x->next)
		if (strcmp(x->team, team) == 0)
			grants_set_limits(x, limits);
	e->used_ms = now;
	if (!e->asks && !grants_has_news(e) && grants_needed(e, now) == STORE_RESOURCES) {
		e->sent++;
		return 1;
	}
	a->next = NULL;
	a->entry = e;
	a->until_ms = now + GRANTS_ANSWER_MS;
	*e->end = a;
	e->end = &a->next;
	timer_set(&g->tick, 0);
	return 0;
}

void grants_cancel(struct grants_ask *a)
{
	struct grants_entry *e = a->entry;
	struct grants_ask **at;

	if (!e)
		return;
	for (at = &e->asks; *at != a; at = &(*at)->next)
		;
	*at = a->next;
	if (!*at)
		e->end = at;
	a->entry = NULL;
}

struct gateway_grants *gateway_grants_new(struct api *a, struct cluster_client *engines,
					  struct tunnels *tunnels)
{
	struct gateway_grants *g = calloc(1, sizeof(*g));

	if (!g)
		abort();
	*g = (struct gateway_grants){ .api = a, .engines = engines, .tunnels = tunnels };
	timer_init(&g->tick, a->loop, grants_tick);
	timer_set(&g->tick, GRANTS_TICK_MS);
	return g;
}

void gateway_grants_free(struct gateway_grants *g)
{
	struct grants_entry *next;

	if (!g)
		return;
	timer_fini(&g->tick);
	for (struct grants_entry *e = g->entries; e; e = next) {
		next = e->next;
		cluster_client_cancel(&e->query);
		node_request_cancel(&e->request);
		free(e);
	}
	free(g);
}
