/* copies.c - see copies.h.
 *
 * Every gateway does this work; the node that receives a file refuses the second one, and a restart is decided by the
 * coordinator, so gateways need no agreement. */
#include "gateway/copies.h"
#include "base/log.h"
#include "gateway/copies_lists.h"
#include "gateway/copy_job.h"
#include "gateway/leaving.h"
#include "gateway/node_request.h"
#include "gateway/restart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	COPIES_TICK_MS = 250,
	COPIES_PLAN_MS = 1000,
	COPIES_JOBS = 4, /* at the same time */
	COPIES_RESTARTS = 64,
	COPIES_DELETES = 16,
	COPIES_REST_MS = 5000,    /* after a job that failed */
	COPIES_SURPLUS_MS = 5000, /* a copy that its node has not wanted for so long is deleted */
	COPIES_DELETE_MS = 5000,
};

struct copies_job {
	struct copies_job *next;
	struct gateway_copies *all;
	struct copy_job job;
};

struct copies_delete {
	struct copies_delete *next;
	struct gateway_copies *all;
	struct node_request request;
};

struct gateway_copies {
	struct gateway_copies_conf conf;
	struct timer tick;
	struct copies_lists *lists;
	struct copies_job *jobs;
	unsigned njobs;
	struct copies_delete *deletes;
	unsigned ndeletes;
	struct restart *restarts;
	unsigned nrestarts;
	json_t *surplus; /* "snapshot@node": since when, in ms */
	uint64_t plan_ms, rest_ms;
	struct leaving *leaving;
	struct gateway_copies_figures figures;
};

static unsigned copies_owner(const struct gateway_copies *g, const char *box)
{
	int node = gateway_moved_node(g->conf.moved, box, strlen(box));

	return node > 0 ? (unsigned)node : 0;
}

/* ---- files on their way ---- */

static void copies_job_done(struct copy_job *j, const char *why)
{
	struct copies_job *x = loop_owner(j, struct copies_job, job), **at = &x->all->jobs;
	struct gateway_copies *g = x->all;

	if (why) {
		log_warn("a copy of a snapshot failed", LOG_S("snapshot", j->snapshot),
			 LOG_U("from", j->from.node), LOG_U("to", j->to.node), LOG_S("why", why));
		g->figures.failed++;
		g->rest_ms = loop_now_ms() + COPIES_REST_MS;
	} else {
		g->figures.copied++;
	}
	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	g->njobs--;
	free(x);
}

static int copies_has_job(const struct gateway_copies *g, const char *snapshot)
{
	for (const struct copies_job *x = g->jobs; x; x = x->next)
		if (strcmp(x->job.snapshot, snapshot) == 0)
			return 1;
	return 0;
}

/* The same choice at all gateways: the first by a hash of snapshot and number. 0: no node can take it. */
static unsigned copies_choose(const struct gateway_copies *g, const char *snapshot, unsigned owner)
{
	const struct tunnel_node *n = NULL;
	unsigned best = 0;
	uint32_t highest = 0;
	char text[ID_MAX + 16];

	while ((n = tunnels_next(g->conf.tunnels, n))) {
		uint32_t hash;

		if (n->number == owner || n->state != TUNNEL_UP || !n->heartbeats ||
		    n->figures.draining ||
		    copies_lists_find(copies_lists_of(g->lists, n->number, "held"), "snapshot",
				      snapshot))
			continue;
		snprintf(text, sizeof(text), "%u %s", n->number, snapshot);
		hash = id_hash(text);
		if (!best || hash > highest) {
			best = n->number;
			highest = hash;
		}
	}
	return best;
}

static void copies_provide(struct gateway_copies *g, unsigned owner, const json_t *want)
{
	const char *snapshot = copies_lists_text(want, "snapshot");
	char identity[128];
	struct copies_job *x;
	unsigned to;

	if (!*snapshot || g->njobs >= COPIES_JOBS || loop_now_ms() < g->rest_ms ||
	    copies_owner(g, copies_lists_text(want, "box")) != owner ||
	    copies_has_job(g, snapshot) || copies_lists_count(g->lists, snapshot, owner) >= COPIES)
		return;
	to = copies_choose(g, snapshot, owner);
	if (!to)
		return;
	x = calloc(1, sizeof(*x));
	if (!x)
		abort();
	*x = (struct copies_job){ .next = g->jobs, .all = g, .job.done = copies_job_done };
	g->jobs = x;
	g->njobs++;
	restart_identity(copies_lists_text(want, "team"), identity);
	copy_job_begin(&x->job, &(struct copy_job_what){ .loop = g->conf.loop,
							 .tunnels = g->conf.tunnels,
							 .from = owner,
							 .to = to,
							 .kind = "copies",
							 .snapshot = snapshot,
							 .identity = identity });
}

/* ---- copies that are not needed ---- */

static void copies_deleted(struct node_request *r, int status, const char *body, size_t n,
			   const char *why)
{
	struct copies_delete *x = loop_owner(r, struct copies_delete, request),
			     **at = &x->all->deletes;

	(void)status;
	(void)body;
	(void)n;
	(void)why; /* it stays in the list of the node, and is deleted later */
	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	x->all->ndeletes--;
	free(x);
}

static void copies_delete(struct gateway_copies *g, unsigned node, const char *snapshot)
{
	struct copies_delete *x;
	char target[64], identity[128];

	if (g->ndeletes >= COPIES_DELETES)
		return;
	x = calloc(1, sizeof(*x));
	if (!x)
		abort();
	*x = (struct copies_delete){ .next = g->deletes, .all = g, .request.done = copies_deleted };
	g->deletes = x;
	g->ndeletes++;
	snprintf(target, sizeof(target), "/cluster/copies/%s", snapshot);
	restart_identity("default", identity);
	node_request_send(&x->request, g->conf.tunnels, g->conf.loop, node,
			  &(struct node_request_what){
				  .method = "DELETE", .target = target, .identity = identity },
			  COPIES_DELETE_MS);
}

/* The node that has the box wants another snapshot, which is safe on other nodes, or no longer has the box. */
static int copies_is_surplus(const struct gateway_copies *g, unsigned owner, const json_t *held)
{
	const json_t *wanted = copies_lists_of(g->lists, owner, "wanted"),
		     *want = copies_lists_find(wanted, "box", copies_lists_text(held, "box"));
	const char *newer = copies_lists_text(want, "snapshot");

	if (!wanted || !gateway_moved_is_current(g->conf.moved))
		return 0;
	/* A node that keeps a copy of its own box has not finished its restart. */
	if (!want)
		return !copies_lists_find(copies_lists_of(g->lists, owner, "held"), "box",
					  copies_lists_text(held, "box"));
	return *newer && strcmp(newer, copies_lists_text(held, "snapshot")) != 0 &&
	       json_integer_value(json_object_get(want, "created_ns")) >
		       json_integer_value(json_object_get(held, "created_ns")) &&
	       copies_lists_count(g->lists, newer, owner) > 0;
}

static void copies_judge(struct gateway_copies *g, unsigned node, const json_t *held,
			 json_t *surplus)
{
	const char *snapshot = copies_lists_text(held, "snapshot");
	unsigned owner = copies_owner(g, copies_lists_text(held, "box"));
	json_int_t since, now = (json_int_t)loop_now_ms();
	char key[64];

	if (!owner || owner == node || !copies_is_surplus(g, owner, held))
		return;
	snprintf(key, sizeof(key), "%s@%u", snapshot, node);
	since = json_integer_value(json_object_get(g->surplus, key));
	json_object_set_new(surplus, key, json_integer(since ? since : now));
	if (since && now - since >= COPIES_SURPLUS_MS)
		copies_delete(g, node, snapshot);
}

/* ---- restarts ---- */

static void copies_restarted(struct restart *r, const char *why)
{
	struct gateway_copies *g = loop_owner(r->conf, struct gateway_copies, conf);

	if (why)
		log_info("a box was not restarted on another node", LOG_S("box", r->box),
			 LOG_U("node", r->node), LOG_S("why", why));
	else
		g->figures.restarted++;
	g->nrestarts--;
	g->plan_ms = 0;
	restart_free(r);
}

/* from_epoch 0: the box was moved to this node, and does not run there. is_leaving: restart.h. */
static void copies_start(struct gateway_copies *g, unsigned node, int64_t epoch, const json_t *held,
			 unsigned from, int64_t from_epoch, int is_leaving)
{
	const char *box = copies_lists_text(held, "box");
	struct restart *r;

	for (r = g->restarts; r; r = r->next)
		if (strcmp(r->box, box) == 0)
			return;
	if (g->nrestarts >= COPIES_RESTARTS)
		return;
	r = calloc(1, sizeof(*r));
	if (!r)
		abort();
	*r = (struct restart){ .next = g->restarts,
			       .link = &g->restarts,
			       .conf = &g->conf,
			       .done = copies_restarted,
			       .keys = json_incref((json_t *)held),
			       .from = from,
			       .node = node,
			       .from_epoch = from_epoch,
			       .epoch = epoch,
			       .is_leaving = is_leaving };
	snprintf(r->box, sizeof(r->box), "%s", box);
	snprintf(r->snapshot, sizeof(r->snapshot), "%s", copies_lists_text(held, "snapshot"));
	if (r->next)
		r->next->link = &r->next;
	g->restarts = r;
	g->nrestarts++;
	restart_begin(r);
}

/* 1: `held` at this node is the newest copy of its box, of several equal ones the first by number. */
static int copies_is_best(const struct gateway_copies *g, unsigned node, const json_t *held)
{
	const char *box = copies_lists_text(held, "box");
	json_int_t created = json_integer_value(json_object_get(held, "created_ns"));

	for (const struct copies_node *c = copies_lists_next(g->lists, NULL); c;
	     c = copies_lists_next(g->lists, c)) {
		const json_t *list = copies_lists_of(g->lists, c->number, "held"), *row;
		size_t i;

		json_array_foreach(list, i, row)
		{
			json_int_t other = json_integer_value(json_object_get(row, "created_ns"));

			if (strcmp(copies_lists_text(row, "box"), box) == 0 &&
			    (other > created || (other == created && c->number < node)))
				return 0;
		}
	}
	return 1;
}

void gateway_copies_restart(struct gateway_copies *g, unsigned node, int64_t epoch)
{
	for (const struct copies_node *c = copies_lists_next(g->lists, NULL); c;
	     c = copies_lists_next(g->lists, c)) {
		const json_t *list = copies_lists_of(g->lists, c->number, "held"), *held;
		const struct node_status *s = gateway_leases_find(g->conf.leases, c->number);
		size_t i;

		if (!s || s->state != NODE_UP || c->number == node)
			continue;
		json_array_foreach(list, i,
				   held) if (copies_owner(g, copies_lists_text(held, "box")) ==
						     node &&
					     copies_is_best(g, c->number, held))
			copies_start(g, c->number, s->epoch, held, node, epoch, 0);
	}
}

/* A box that was moved to this node, and was not started: the gateway that moved it has failed, or the node has been
 * restarted since. */
static void copies_repair(struct gateway_copies *g, unsigned node, const json_t *held)
{
	const struct node_status *s = gateway_leases_find(g->conf.leases, node);
	const char *box = copies_lists_text(held, "box");
	int64_t epoch;
	int at;

	if (json_is_true(json_object_get(held, "live")) ||
	    !gateway_moved_find(g->conf.moved, box, &at, &epoch) || (unsigned)at != node || !s ||
	    s->state != NODE_UP || !gateway_moved_is_current(g->conf.moved))
		return;
	if (copies_is_best(g, node, held))
		copies_start(g, node, s->epoch, held, node, 0, 0);
}

/* leaving_hooks.start: the first of the nodes that have this snapshot. */
static void copies_start_leaving(void *user, unsigned from, int64_t epoch, const json_t *want)
{
	struct gateway_copies *g = user;
	const char *snapshot = copies_lists_text(want, "leaving");

	for (const struct copies_node *c = copies_lists_next(g->lists, NULL); c;
	     c = copies_lists_next(g->lists, c)) {
		const json_t *held = copies_lists_find(copies_lists_of(g->lists, c->number, "held"),
						       "snapshot", snapshot);
		const struct node_status *s = gateway_leases_find(g->conf.leases, c->number);
		const struct tunnel_node *n = tunnels_find(g->conf.tunnels, c->number);

		if (!held || c->number == from || !s || s->state != NODE_UP || !n ||
		    n->figures.draining)
			continue;
		copies_start(g, c->number, s->epoch, held, from, epoch, 1);
		return;
	}
}

/* ---- the plan ---- */

static void copies_plan(struct gateway_copies *g)
{
	json_t *surplus = json_object();
	const json_t *row;
	size_t i;

	g->figures.held = g->figures.wanted = 0;
	for (const struct copies_node *c = copies_lists_next(g->lists, NULL); c;
	     c = copies_lists_next(g->lists, c)) {
		const json_t *held = copies_lists_of(g->lists, c->number, "held"),
			     *wanted = copies_lists_of(g->lists, c->number, "wanted");

		g->figures.held += (unsigned)json_array_size(held);
		g->figures.wanted += (unsigned)json_array_size(wanted);
		json_array_foreach(wanted, i, row) copies_provide(g, c->number, row);
		json_array_foreach(held, i, row)
		{
			copies_judge(g, c->number, row, surplus);
			copies_repair(g, c->number, row);
		}
	}
	json_decref(g->surplus);
	g->surplus = surplus;
	leaving_plan(g->leaving);
}

static void copies_tick(struct timer *t)
{
	struct gateway_copies *g = loop_owner(t, struct gateway_copies, tick);

	timer_set(&g->tick, COPIES_TICK_MS);
	if (copies_lists_read(g->lists))
		g->plan_ms = 0;
	if (!copies_lists_next(g->lists, NULL) || loop_now_ms() - g->plan_ms < COPIES_PLAN_MS)
		return;
	g->plan_ms = loop_now_ms();
	copies_plan(g);
}

struct gateway_copies_figures gateway_copies_figures(const struct gateway_copies *g)
{
	return g->figures;
}

struct gateway_copies *gateway_copies_new(const struct gateway_copies_conf *conf)
{
	struct gateway_copies *g = calloc(1, sizeof(*g));

	if (!g)
		abort();
	g->conf = *conf;
	g->surplus = json_object();
	g->lists = copies_lists_new(conf->loop, conf->tunnels);
	g->leaving = leaving_new(&g->conf, g->lists, copies_start_leaving, g);
	timer_init(&g->tick, conf->loop, copies_tick);
	timer_set(&g->tick, COPIES_TICK_MS);
	return g;
}

void gateway_copies_free(struct gateway_copies *g)
{
	if (!g)
		return;
	timer_fini(&g->tick);
	while (g->restarts)
		restart_free(g->restarts);
	while (g->jobs) {
		struct copies_job *x = g->jobs;

		g->jobs = x->next;
		copy_job_cancel(&x->job);
		free(x);
	}
	while (g->deletes) {
		struct copies_delete *x = g->deletes;

		g->deletes = x->next;
		node_request_cancel(&x->request);
		free(x);
	}
	leaving_free(g->leaving);
	copies_lists_free(g->lists);
	json_decref(g->surplus);
	free(g);
}
