/* restart.c - see restart.h. */
#include "gateway/restart.h"
#include "base/log.h"
#include "coordinator/queries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESTART_NODE_MS = 60000 };

void restart_identity(const char *team, char out[128])
{
	snprintf(out, 128, "%.64s owner cluster - 0 - -", team);
}

static const char *restart_text(const struct restart *r, const char *key)
{
	const char *text = json_string_value(json_object_get(r->keys, key));

	return text ? text : "";
}

static void restart_ended(struct timer *t)
{
	struct restart *r = loop_owner(t, struct restart, end);

	r->done(r, r->why[0] ? r->why : NULL);
}

static void restart_finish(struct restart *r, const char *why)
{
	snprintf(r->why, sizeof(r->why), "%.159s", why ? why : "");
	timer_set(&r->end, 0);
}

/* ---- the node ---- */

static void restart_answered(struct node_request *x, int status, const char *body, size_t n,
			     const char *why)
{
	struct restart *r = loop_owner(x, struct restart, request);
	char text[160];

	if (status == 200 || status == 201) {
		restart_finish(r, NULL);
		return;
	}
	snprintf(text, sizeof(text), "node %u: %d %.*s%s", r->node, status,
		 (int)(n < 120 ? n : 120), body ? body : "", why ? why : "");
	restart_finish(r, text);
}

static void restart_order(struct restart *r)
{
	char identity[128], body[128];
	int n = snprintf(body, sizeof(body), "{\"snapshot\":\"%s\",\"epoch\":%lld}", r->snapshot,
			 (long long)r->epoch);

	restart_identity(restart_text(r, "team"), identity);
	r->request.done = restart_answered;
	node_request_send(&r->request, r->conf->tunnels, r->conf->loop, r->node,
			  &(struct node_request_what){ .method = "POST",
						       .target = "/cluster/restart",
						       .identity = identity,
						       .body = body,
						       .n = (size_t)n },
			  RESTART_NODE_MS);
}

/* ---- the coordinator ---- */

static void restart_move(struct restart *r);

static void restart_moved(void *user, const struct coordinator_answer *a, const struct err *e)
{
	struct restart *r = user;

	if (e || !a->done) {
		restart_finish(r, e ? e->msg : "its node has returned, or it was moved elsewhere");
		return;
	}
	if (r->step == 0)
		gateway_moved_add(r->conf->moved, r->box, (int)r->from, (int)r->node, r->epoch);
	r->step++;
	if (r->step == 1 && *restart_text(r, "session"))
		restart_move(r);
	else
		restart_order(r);
}

/* Step 0 with the name, step 1 with the session. */
static void restart_move(struct restart *r)
{
	const char *name = restart_text(r, r->step ? "session" : "name");
	struct coordinator_request q = { .op = COORDINATOR_MOVE_BOX,
					 .box = r->box,
					 .from = (int)r->from,
					 .from_epoch = r->from_epoch,
					 .up = r->is_leaving,
					 .node = (int)r->node,
					 .epoch = r->epoch };

	if (*name)
		q.key = (struct coordinator_key){ restart_text(r, "team"), r->step ? 's' : 'n',
						  name,
						  r->step ? restart_text(r, "template") : "" };
	coordinator_ask(r->conf->coordinator, &q, restart_moved, r);
}

/* A box that was moved before: a node that returns after a loss has an epoch that the coordinator has stored, so its
 * answer includes a later move to a third node. */
static void restart_found(void *user, const struct coordinator_answer *a, const struct err *e)
{
	struct restart *r = user;

	if (e || !a->done || a->number != (int)r->node)
		restart_finish(r, e ? e->msg : "it was moved elsewhere");
	else
		restart_order(r);
}

static void restart_find(struct restart *r)
{
	const struct coordinator_request q = { .op = COORDINATOR_FIND_BOX, .box = r->box };

	coordinator_ask(r->conf->coordinator, &q, restart_found, r);
}

/* ---- the directory ---- */

static void restart_looked(struct cluster_request *x, const json_t *answer, const struct err *e)
{
	struct restart *r = loop_owner(x, struct restart, query);

	if (e)
		restart_finish(r, e->msg);
	else if (json_array_size(query_rows(answer, 0)))
		restart_finish(r, "it has ended");
	else if (r->from_epoch)
		restart_move(r);
	else
		restart_find(r);
}

void restart_begin(struct restart *r)
{
	timer_init(&r->end, r->conf->loop, restart_ended);
	r->query.done = restart_looked;
	query_request(r->conf->engines, &r->query, "box_ended", json_pack("[s]", r->box));
}

void restart_free(struct restart *r)
{
	*r->link = r->next;
	if (r->next)
		r->next->link = r->link;
	cluster_client_cancel(&r->query);
	node_request_cancel(&r->request);
	timer_fini(&r->end);
	json_decref(r->keys);
	free(r);
}
