/* objects_sweep.c - removes objects that nothing refers to. See objects.h.
 *
 * Nothing is decided by absence of an answer: an object of a snapshot is given up only if the node that owns the snapshot says
 * that it does not exist, or if a client has deleted it. From then on no request gets a URL of it ("deleting"), in the same
 * transaction that finds that none got one since the question; it is removed when the last URL has expired. */
#include "gateway/objects_internal.h"
#include "base/log.h"
#include "coordinator/queries.h"
#include "gateway/restart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SWEEP_MS = 5000, SWEEP_NODE_MS = 10000 };

static void sweep_next(struct objects_sweep *s);

/* The next row. */
static void sweep_stored(struct cluster_request *r, const json_t *answer, const struct err *e)
{
	(void)answer;
	(void)e; /* done again by a later sweep */
	sweep_next(loop_owner(r, struct objects_sweep, query));
}

static void sweep_query(struct objects_sweep *s, const char *name, json_t *take_params)
{
	s->query.done = sweep_stored;
	query_request(s->all->conf.engines, &s->query, name, take_params);
}

static void sweep_drop_row(struct objects_sweep *s)
{
	json_array_remove(s->is_deleting ? s->ended : s->checked, 0);
}

static const json_t *sweep_row(const struct objects_sweep *s)
{
	return json_array_get(s->is_deleting ? s->ended : s->checked, 0);
}

/* ---- removed ---- */

static void sweep_deleted(struct node_request *r, int status, const char *body, size_t n,
			  const char *why)
{
	struct objects_sweep *s = loop_owner(r, struct objects_sweep, node);
	char key[OBJECTS_KEY];

	snprintf(key, sizeof(key), "%s", query_text(sweep_row(s), 0));
	sweep_drop_row(s);
	if (status == 204) {
		sweep_query(s, "object_gone", json_pack("[s]", key));
		return;
	}
	log_info("an object was not removed", LOG_S("key", key), LOG_I("status", status),
		 LOG_S("why", why ? why : ""));
	(void)body;
	(void)n;
	sweep_next(s);
}

static const struct tunnel_node *sweep_any_node(const struct objects_sweep *s)
{
	const struct tunnel_node *n = tunnels_next(s->all->conf.tunnels, NULL);

	while (n && n->state != TUNNEL_UP)
		n = tunnels_next(s->all->conf.tunnels, n);
	return n;
}

static void sweep_signed(struct cluster_request *r, const json_t *answer, const struct err *e)
{
	struct objects_sweep *s = loop_owner(r, struct objects_sweep, query);
	const char *url = json_string_value(json_object_get(answer, "url"));
	const struct tunnel_node *n = sweep_any_node(s);
	char body[OBJECTS_BODY], identity[128];
	int len;

	if (e || !url || !n) {
		sweep_drop_row(s);
		sweep_next(s);
		return;
	}
	restart_identity("default", identity);
	len = snprintf(body, sizeof(body), "{\"url\":\"%.4096s\"}", url);
	s->node = (struct node_request){ .done = sweep_deleted };
	node_request_send(&s->node, s->all->conf.tunnels, s->all->conf.loop, n->number,
			  &(struct node_request_what){ .method = "POST",
						       .target = "/cluster/objects/delete",
						       .identity = identity,
						       .body = body,
						       .n = (size_t)len },
			  SWEEP_NODE_MS);
}

/* ---- does the snapshot still exist? ---- */

static void sweep_checked(struct node_request *r, int status, const char *body, size_t n,
			  const char *why)
{
	struct objects_sweep *s = loop_owner(r, struct objects_sweep, node);
	char key[OBJECTS_KEY], used[64];

	(void)body;
	(void)n;
	(void)why;
	snprintf(key, sizeof(key), "%s", query_text(sweep_row(s), 0));
	snprintf(used, sizeof(used), "%s", query_text(sweep_row(s), 4));
	sweep_drop_row(s);
	if (status == 404)
		sweep_query(s, "object_unreferenced", json_pack("[s, s]", key, used));
	else
		sweep_next(s);
}

static void sweep_check(struct objects_sweep *s)
{
	const json_t *row = sweep_row(s);
	unsigned owner = (unsigned)query_int(row, 2);
	const struct tunnel_node *n = tunnels_find(s->all->conf.tunnels, owner);
	char target[64], identity[128];

	if (!n || n->state != TUNNEL_UP || !n->greeted || !id_valid(query_text(row, 1))) {
		sweep_drop_row(s);
		sweep_next(s);
		return;
	}
	restart_identity(query_text(row, 3), identity);
	snprintf(target, sizeof(target), "/v1/snapshots/%s", query_text(row, 1));
	s->node = (struct node_request){ .done = sweep_checked };
	node_request_send(&s->node, s->all->conf.tunnels, s->all->conf.loop, owner,
			  &(struct node_request_what){ .target = target, .identity = identity },
			  SWEEP_NODE_MS);
}

/* ---- rounds ---- */

static void sweep_next(struct objects_sweep *s)
{
	timer_set(&s->clock, 0); /* not from within a callback of a request */
}

static void sweep_end(struct objects_sweep *s)
{
	json_decref(s->ended);
	json_decref(s->checked);
	s->ended = s->checked = NULL;
	timer_set(&s->clock, SWEEP_MS);
}

static void sweep_due(struct cluster_request *r, const json_t *answer, const struct err *e)
{
	struct objects_sweep *s = loop_owner(r, struct objects_sweep, query);
	const json_t *ended = query_rows(answer, 1), *checked = query_rows(answer, 2);

	if (e || !ended || !checked) {
		sweep_end(s);
		return;
	}
	s->ended = json_deep_copy(ended);
	s->checked = json_deep_copy(checked);
	sweep_next(s);
}

static void sweep_step(struct timer *t)
{
	struct objects_sweep *s = loop_owner(t, struct objects_sweep, clock);

	if (!s->ended) {
		s->query.done = sweep_due;
		query_request(s->all->conf.engines, &s->query, "objects_due", json_array());
		return;
	}
	s->is_deleting = json_array_size(s->ended) > 0;
	if (s->is_deleting) {
		s->query.done = sweep_signed;
		objects_sign_request(s->all, &s->query, "DELETE", query_text(sweep_row(s), 0));
	} else if (json_array_size(s->checked)) {
		sweep_check(s);
	} else {
		sweep_end(s);
	}
}

void objects_sweep_init(struct gateway_objects *g)
{
	g->sweep.all = g;
	timer_init(&g->sweep.clock, g->conf.loop, sweep_step);
	timer_set(&g->sweep.clock, SWEEP_MS);
}

void objects_sweep_fini(struct gateway_objects *g)
{
	cluster_client_cancel(&g->sweep.query);
	node_request_cancel(&g->sweep.node);
	timer_fini(&g->sweep.clock);
	json_decref(g->sweep.ended);
	json_decref(g->sweep.checked);
}
