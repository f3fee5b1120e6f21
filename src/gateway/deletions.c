/* deletions.c - see deletions.h. The node checks the stored identity of the caller again when it gets the request. */
#include "gateway/deletions.h"
#include "base/id.h"
#include "base/log.h"
#include "coordinator/queries.h"
#include "gateway/gateway_call.h"
#include "gateway/moved.h"
#include "gateway/node_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DELETIONS_LOOK_MS = 2000, DELETIONS_ANSWER_MS = 10000 };

struct deletion {
	struct deletion *next;
	struct deletions *all;
	struct node_request request;
	struct cluster_request done;
	char id[ID_MAX + 1];
};

struct deletions {
	struct deletions_conf conf;
	struct timer look;
	struct cluster_request request;
	struct deletion *first;
};

/* ---- carried out ---- */

static void deletions_drop(struct deletion *x)
{
	struct deletion **at = &x->all->first;

	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	node_request_cancel(&x->request);
	cluster_client_cancel(&x->done);
	free(x);
}

/* A row that stays is sent again, and then the node has no such box. */
static void deletions_removed(struct cluster_request *r, const json_t *answer, const struct err *e)
{
	(void)answer;
	(void)e;
	deletions_drop(loop_owner(r, struct deletion, done));
}

static void deletions_answered(struct node_request *r, int status, const char *body, size_t n,
			       const char *why)
{
	struct deletion *x = loop_owner(r, struct deletion, request);

	(void)body;
	(void)n;
	if (status < 200 || status >= 500 || status == 429) {
		log_info("the deletion of a box waits", LOG_S("box", x->id),
			 LOG_I("status", status), LOG_S("why", why ? why : ""));
		deletions_drop(x);
		return;
	}
	if (status <
	    300) { /* lists show the box until its row has ended: the next look finds that it has (404) */
		deletions_drop(x);
		return;
	}
	if (status != 404)
		log_warn("a stored deletion was refused by the node", LOG_S("box", x->id),
			 LOG_I("status", status));
	x->done.done = deletions_removed;
	query_request(x->all->conf.engines, &x->done, "deletion_done", json_pack("[s]", x->id));
}

static void deletions_send(struct deletions *d, const char *id, const char *identity)
{
	int node = gateway_moved_node(d->conf.moved, id, strlen(id));
	const struct tunnel_node *n =
		node < 0 ? NULL : tunnels_find(d->conf.tunnels, (uint32_t)node);
	struct deletion *x = d->first;
	char target[64];

	while (x && strcmp(x->id, id) != 0)
		x = x->next;
	/* greeted: the node knows which of its boxes run elsewhere. */
	if (x || !n || n->state != TUNNEL_UP || !n->greeted)
		return;
	x = calloc(1, sizeof(*x));
	if (!x)
		abort();
	*x = (struct deletion){ .next = d->first, .all = d, .request.done = deletions_answered };
	d->first = x;
	snprintf(x->id, sizeof(x->id), "%s", id);
	snprintf(target, sizeof(target), "/v1/boxes/%s", id);
	node_request_send(&x->request, d->conf.tunnels, d->conf.loop, n->number,
			  &(struct node_request_what){
				  .method = "DELETE", .target = target, .identity = identity },
			  DELETIONS_ANSWER_MS);
}

static void deletions_looked(struct cluster_request *r, const json_t *answer, const struct err *e)
{
	struct deletions *d = loop_owner(r, struct deletions, request);
	const json_t *row;
	size_t i;

	timer_set(&d->look, DELETIONS_LOOK_MS);
	if (e || !gateway_moved_is_current(d->conf.moved))
		return;
	json_array_foreach(query_rows(answer, 0), i, row) if (id_valid(query_text(row, 0)))
		deletions_send(d, query_text(row, 0), query_text(row, 1));
}

static void deletions_look(struct timer *t)
{
	struct deletions *d = loop_owner(t, struct deletions, look);

	d->request.done = deletions_looked;
	query_request(d->conf.engines, &d->request, "deletions_due", json_array());
}

struct deletions *deletions_new(const struct deletions_conf *conf)
{
	struct deletions *d = calloc(1, sizeof(*d));

	if (!d)
		abort();
	d->conf = *conf;
	timer_init(&d->look, conf->loop, deletions_look);
	timer_set(&d->look, DELETIONS_LOOK_MS);
	return d;
}

void deletions_free(struct deletions *d)
{
	if (!d)
		return;
	while (d->first)
		deletions_drop(d->first);
	cluster_client_cancel(&d->request);
	timer_fini(&d->look);
	free(d);
}

/* ---- stored ---- */

/* The id of the box that the request deletes; NULL: it does something else. */
static const char *deletions_box(const struct gateway_call *x)
{
	const struct call *c = x->call;
	static const char *const paths[] = { "/v1/boxes/", "/sandboxes/" };

	if (strcmp(c->req->method, "DELETE") != 0 || x->target.kind != TARGET_NODE ||
	    !id_valid(x->target.object) || c->who.role < ROLE_EDITOR ||
	    (c->who.box[0] && strcmp(c->who.box, x->target.object) != 0))
		return NULL;
	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		size_t n = strlen(paths[i]);

		if (strncmp(c->req->path, paths[i], n) == 0 &&
		    strcmp(c->req->path + n, x->target.object) == 0)
			return x->target.object;
	}
	return NULL;
}

static void deletions_stored(struct cluster_request *r, const json_t *answer, const struct err *e)
{
	struct gateway_call *x = loop_owner(r, struct gateway_call, deletion.request);

	if (e || !json_array_size(query_rows(answer, 0))) {
		x->deletion.failed(x);
		return;
	}
	call_send(x->call, 202,
		  json_pack("{s:s, s:s, s:i}", "id", x->target.object, "state", "deleting", "node",
			    (int)x->node));
}

int deletions_take(struct gateway_call *x, void (*failed)(struct gateway_call *x))
{
	const char *box = x->gateway->engines && x->identity[0] ? deletions_box(x) : NULL;
	char node[12];

	if (!box || x->deletion.failed)
		return 0;
	snprintf(node, sizeof(node), "%u", x->node);
	x->deletion.failed = failed;
	x->deletion.request.done = deletions_stored;
	query_request(x->gateway->engines, &x->deletion.request, "deletion_add",
		      json_pack("[s, s, s, s]", box, x->call->who.team, node, x->identity));
	return 1;
}

void deletions_end(struct gateway_call *x)
{
	cluster_client_cancel(&x->deletion.request);
}
