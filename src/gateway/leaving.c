/* leaving.c - see leaving.h. */
#include "gateway/leaving.h"
#include "base/log.h"
#include "gateway/restart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LEAVING_JOBS = 4, /* at the same time */
	LEAVING_MS = 60000,
	LEAVING_REST_MS = 15000, /* after a request that failed */
	LEAVING_WAIT_MS = 1000,  /* after one that did not */
};

struct leaving_job {
	struct leaving_job *next;
	struct leaving *all;
	char box[ID_MAX + 1];
	struct node_request request;
};

struct leaving {
	const struct gateway_copies_conf *conf;
	struct copies_lists *lists;
	void (*start)(void *user, unsigned from, int64_t epoch, const json_t *want);
	void *user;
	struct leaving_job *jobs;
	unsigned njobs;
	json_t *rests; /* box: when the next request for it may be sent, in ms */
};

static struct leaving_job *leaving_find_job(const struct leaving *x, const char *box)
{
	struct leaving_job *j = x->jobs;

	while (j && strcmp(j->box, box) != 0)
		j = j->next;
	return j;
}

static void leaving_answered(struct node_request *r, int status, const char *body, size_t n,
			     const char *why)
{
	struct leaving_job *j = loop_owner(r, struct leaving_job, request), **at = &j->all->jobs;
	struct leaving *x = j->all;
	int is_done = status >= 200 && status < 300;
	char text[160];

	snprintf(text, sizeof(text), "%d %.*s%s", status, (int)(n < 120 ? n : 120),
		 body ? body : "", why ? why : "");
	if (!is_done)
		log_info("a box did not leave its node", LOG_S("box", j->box),
			 LOG_U("node", r->node), LOG_S("why", text));
	json_object_set_new(
		x->rests, j->box,
		json_integer((json_int_t)loop_now_ms() +
			     (is_done || status == 409 ? LEAVING_WAIT_MS : LEAVING_REST_MS)));
	while (*at != j)
		at = &(*at)->next;
	*at = j->next;
	x->njobs--;
	free(j);
}

/* take_body: of the request. */
static void leaving_send(struct leaving *x, unsigned node, const char *box, const char *target,
			 json_t *take_body)
{
	char *body = json_dumps(take_body, JSON_COMPACT), identity[128];
	struct leaving_job *j = calloc(1, sizeof(*j));

	if (!body || !j)
		abort();
	json_decref(take_body);
	*j = (struct leaving_job){ .next = x->jobs, .all = x, .request.done = leaving_answered };
	snprintf(j->box, sizeof(j->box), "%s", box);
	x->jobs = j;
	x->njobs++;
	restart_identity("default", identity);
	node_request_send(&j->request, x->conf->tunnels, x->conf->loop, node,
			  &(struct node_request_what){ .method = "POST",
						       .target = target,
						       .identity = identity,
						       .body = body,
						       .n = strlen(body) },
			  LEAVING_MS);
	free(body);
}

static int leaving_has_receiver(const struct leaving *x, unsigned from)
{
	for (const struct tunnel_node *n = tunnels_next(x->conf->tunnels, NULL); n;
	     n = tunnels_next(x->conf->tunnels, n))
		if (n->number != from && n->state == TUNNEL_UP && n->heartbeats &&
		    !n->figures.draining)
			return 1;
	return 0;
}

/* The box runs on the node that it was moved to, or has ended there: its copy is used up. */
static int leaving_has_arrived(const struct leaving *x, const char *box, unsigned node)
{
	const json_t *held = copies_lists_of(x->lists, node, "held");

	return held && (copies_lists_find(copies_lists_of(x->lists, node, "wanted"), "box", box) ||
			!copies_lists_find(held, "box", box));
}

static void leaving_plan_box(struct leaving *x, const struct node_status *from, const json_t *want)
{
	const char *box = copies_lists_text(want, "box"), *snapshot;
	int node = gateway_moved_node(x->conf->moved, box, strlen(box));
	int may_leave = json_is_true(json_object_get(want, "may_leave"));

	snapshot = copies_lists_text(want, "leaving");
	if (*snapshot || may_leave)
		gateway_moved_hurry(x->conf->moved);
	if ((!*snapshot && !may_leave) || node <= 0 || x->njobs >= LEAVING_JOBS ||
	    leaving_find_job(x, box) ||
	    (json_int_t)loop_now_ms() < json_integer_value(json_object_get(x->rests, box)) ||
	    !gateway_moved_is_current(x->conf->moved))
		return;
	if (*snapshot && (unsigned)node == from->number)
		x->start(x->user, from->number, from->epoch, want);
	else if (*snapshot && leaving_has_arrived(x, box, (unsigned)node))
		leaving_send(x, from->number, box, "/cluster/left", json_pack("{ss}", "box", box));
	else if (!*snapshot && leaving_has_receiver(x, from->number))
		leaving_send(x, from->number, box, "/cluster/leave", json_pack("{ss}", "box", box));
	else if (!*snapshot)
		leaving_send(x, from->number, box, "/cluster/leave",
			     json_pack("{ss ss}", "box", box, "stays_because",
				       "no other node takes boxes at the moment"));
}

void leaving_plan(struct leaving *x)
{
	for (const struct copies_node *c = copies_lists_next(x->lists, NULL); c;
	     c = copies_lists_next(x->lists, c)) {
		const struct node_status *s = gateway_leases_find(x->conf->leases, c->number);
		const json_t *want;
		size_t i;

		if (!s || s->state != NODE_UP)
			continue;
		json_array_foreach(copies_lists_of(x->lists, c->number, "wanted"), i, want)
			leaving_plan_box(x, s, want);
	}
	if (!x->njobs && json_object_size(x->rests) > 1000)
		json_object_clear(x->rests);
}

struct leaving *leaving_new(const struct gateway_copies_conf *conf, struct copies_lists *lists,
			    void (*start)(void *user, unsigned from, int64_t epoch,
					  const json_t *want),
			    void *user)
{
	struct leaving *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	*x = (struct leaving){
		.conf = conf, .lists = lists, .start = start, .user = user, .rests = json_object()
	};
	return x;
}

void leaving_free(struct leaving *x)
{
	if (!x)
		return;
	while (x->jobs) {
		struct leaving_job *j = x->jobs;

		x->jobs = j->next;
		node_request_cancel(&j->request);
		free(j);
	}
	json_decref(x->rests);
	free(x);
}
