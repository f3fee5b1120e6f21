/* create.c - requests that make a new box, or another object of a node.
 *
 *   body -> a snapshot or volume in it: the node that has it
 *        -> a name or a session of a box: claim.c, for the node that placement chooses
 *        -> another name, session, or an Idempotency-Key: its own node, so that a repetition reaches the same one
 *        -> else placement; a node that refuses is followed by the next, PLACE_ATTEMPTS times
 *
 * The own node of a text is the first by a hash of text and number: all gateways choose the same one without
 * asking each other, as long as they are connected to the same nodes. */
#include "api/fragment_session.h"
#include "api/quota.h"
#include "base/cleanup.h"
#include "gateway/gateway_call.h"
#include "gateway/moved.h"
#include "http/client.h"
#include "lang/lang.h"

#include <stdio.h>
#include <string.h>

enum { CREATE_WAIT_MS = 100, CREATE_WAITS = 20, CREATE_START_MS = 3000, CREATE_RETURN_MS = 2500 };

/* Of CONTROL_LOAD_FULL: between the node that has compiled a source and the one with the least load. */
enum { CREATE_IMBALANCE = CONTROL_LOAD_FULL / 4 };
#define CREATE_MEMORY (UINT64_C(256) << 20)   /* of a box whose request does not say it */
#define CREATE_MEMORY_MOST (INT64_C(1) << 48) /* no machine has more: a node rejects the request */

static const char *create_text(const struct gateway_call *x, const char *name)
{
	const char *text = json_string_value(json_object_get(x->doc, name));

	return text && *text ? text : NULL;
}

/* All requests of a session must reach the same node. */
static const char *create_session(const struct gateway_call *x)
{
	const char *path;

	if (strcmp(x->call->req->path, "/api/sandbox") != 0)
		return create_text(x, "session");
	return fragment_session(fragment_of_body(x->doc, &path), x->doc);
}

/* ---- labels ---- */

/* The labels that the node must have, as the array for place.h; NULL: the request names none, or is invalid, and a node
 * rejects it. */
static const char *const *create_labels(const struct gateway_call *x,
					const char *out[PLACE_LABELS + 1])
{
	const json_t *all = json_object_get(x->doc, "labels"), *one;
	unsigned n = 0;
	size_t i;

	if (!json_is_array(all) || json_array_size(all) > PLACE_LABELS)
		return NULL;
	json_array_foreach(all, i, one) if (json_is_string(one)) out[n++] = json_string_value(one);
	out[n] = NULL;
	return out;
}

static int create_has_labels(const struct control_figures *f, const char *const *labels)
{
	for (; labels && *labels; labels++) {
		unsigned i = 0;

		while (i < f->nlabels && strcmp(f->labels[i], *labels) != 0)
			i++;
		if (i == f->nlabels)
			return 0;
	}
	return 1;
}

/* ---- the node of a text ---- */

int create_own_node(const struct gateway_call *x, const char *kind, const char *text)
{
	struct tunnel_node *best = NULL;
	const char *labels[PLACE_LABELS + 1];
	uint64_t most = 0;
	char whole[512];

	snprintf(whole, sizeof(whole), "%s %s %.300s", x->call->who.team, kind, text);
	for (struct tunnel_node *n = tunnels_next(x->gateway->tunnels, NULL); n;
	     n = tunnels_next(x->gateway->tunnels, n)) {
		char each[560];
		uint64_t score;

		if (n->state != TUNNEL_UP || n->figures.draining ||
		    !create_has_labels(&n->figures, create_labels(x, labels)))
			continue;
		snprintf(each, sizeof(each), "%u %s", n->number, whole);
		score = control_hash(each);
		if (!best || score > most) {
			best = n;
			most = score;
		}
	}
	return best ? (int)best->number : -1;
}

/* ---- the node that has compiled it before ---- */

/* 1: the load of this node is about that of the least loaded one. */
static int create_is_balanced(const struct gateway *g, unsigned node)
{
	const struct tunnel_node *own = tunnels_find(g->tunnels, node);
	unsigned least = CONTROL_LOAD_FULL;

	for (const struct tunnel_node *n = tunnels_next(g->tunnels, NULL); n;
	     n = tunnels_next(g->tunnels, n))
		if (n->state == TUNNEL_UP && !n->figures.draining && n->figures.load < least)
			least = n->figures.load;
	return own && own->figures.load <= least + CREATE_IMBALANCE;
}

/* Each node keeps what it has compiled, so the same source of a team goes to the same node, and so do its batches, unless
 * others have less load. -1: any node. */
static int create_compiled_node(const struct gateway_call *x)
{
	const char *path = x->call->req->path, *code = create_text(x, "code"),
		   *language = create_text(x, "language");
	const struct lang *l = language ? lang_named(language) : NULL;
	char text[80] = "";
	int node;

	if (!strcmp(path, "/v1/run") && code && l && l->compile[0])
		snprintf(text, sizeof(text), "%.40s %016llx", l->name,
			 (unsigned long long)control_hash(code));
	else if (strcmp(path, "/v1/batch") != 0)
		return -1;
	node = create_own_node(x, "source", text);
	return node >= 0 && create_is_balanced(x->gateway, (unsigned)node) ? node : -1;
}

/* ---- placement ---- */

static void create_place(struct gateway_call *x);

static uint64_t create_memory(const struct gateway_call *x)
{
	const json_t *limits = json_object_get(x->doc, "limits");
	json_int_t n = json_integer_value(json_object_get(limits, "mem"));

	return n > 0 && n <= CREATE_MEMORY_MOST ? (uint64_t)n : CREATE_MEMORY;
}

void create_fail(struct gateway_call *x, const struct err *e)
{
	x->gateway->figures.refused++;
	scale_count_refused(&x->gateway->scale, create_memory(x), loop_now_ms());
	http_set(x->call->req, "Retry-After", "1");
	call_error(x->call, 503, "full", "no node can take the box", e->msg,
		   "try again, or ask for less: atoll node ls shows the load of all nodes");
}

/* A node that is full, draining or cannot start boxes now. Every other answer is the client's. */
static const char *create_judge(struct gateway_call *x, const struct http_answer *a)
{
	claim_judge(x, a);
	place_answered(x->gateway->place, x->node, a->status < 500 || a->status == 503,
		       loop_now_ms());
	if (a->status != 503 || x->ntried == PLACE_ATTEMPTS)
		return NULL;
	return "it refused";
}

static void create_refused(struct gateway_call *x)
{
	create_place(x);
}

/* The node was not chosen by placement: no other one can do it. */
static const char *create_judge_fixed(struct gateway_call *x, const struct http_answer *a)
{
	claim_judge(x, a);
	return NULL;
}

static void create_at(struct gateway_call *x, unsigned node)
{
	x->gateway->figures.created++;
	scale_count_created(&x->gateway->scale, create_memory(x), loop_now_ms());
	if (x->claim.nkeys) {
		x->judge = x->judge ? x->judge : create_judge_fixed;
		claim_begin(x, node);
	} else {
		forward_begin(x, node);
	}
}

void create_at_chosen(struct gateway_call *x, unsigned node)
{
	x->judge = create_judge;
	create_at(x, node);
}

int create_fits(const struct gateway_call *x, const struct tunnel_node *n)
{
	const char *labels[PLACE_LABELS + 1];

	return create_has_labels(&n->figures, create_labels(x, labels));
}

static void create_wait_over(struct timer *t)
{
	create_place(loop_owner(t, struct gateway_call, wait));
}

/* 1: this node was connected a moment ago, or has connected and does not have all rows yet. */
static int create_is_returning(const struct tunnel_node *n)
{
	return !n->figures.draining &&
	       (n->state == TUNNEL_UP ? !n->user : loop_now_ms() - n->since_ms < CREATE_RETURN_MS);
}

/* 1: a node that may take the box may be connected in a moment: this server has just started, or nodes connect again. */
static int create_waits(struct gateway_call *x)
{
	const struct gateway *g = x->gateway;
	int may_come = !place_count(g->place) && (loop_now_ms() - g->started_ms < CREATE_START_MS ||
						  tunnels_next(g->tunnels, NULL));

	for (const struct tunnel_node *n = tunnels_next(g->tunnels, NULL); n && !may_come;
	     n = tunnels_next(g->tunnels, n))
		may_come = create_is_returning(n);
	if (!may_come || x->waits++ == CREATE_WAITS)
		return 0;
	timer_init(&x->wait, x->call->api->loop, create_wait_over);
	timer_set(&x->wait, CREATE_WAIT_MS);
	return 1;
}

int create_next_node(struct gateway_call *x, struct err *e)
{
	const char *labels[PLACE_LABELS + 1], *template = create_text(x, "template"),
					      *e2b = create_text(x, "templateID");
	struct place_request r = { .template = template ? template
					       : e2b    ? e2b
							: "",
				   .memory = create_memory(x),
				   .labels = create_labels(x, labels),
				   .node = -1,
				   .tried = x->tried,
				   .ntried = x->ntried };
	int node;

	if (x->ntried == PLACE_ATTEMPTS)
		return err_set(e, ERR_LIMIT, "%d nodes refused it", PLACE_ATTEMPTS);
	node = place_choose(x->gateway->place, &r, loop_now_ms(), e);
	if (node >= 0)
		x->tried[x->ntried++] = (unsigned)node;
	return node;
}

static void create_place(struct gateway_call *x)
{
	struct err e;
	int node = x->ntried ? -1 : create_compiled_node(x);

	if (node >= 0)
		x->tried[x->ntried++] = (unsigned)node;
	else
		node = create_next_node(x, &e);
	if (node < 0 && create_waits(x))
		return;
	if (node < 0) {
		create_fail(x, &e);
		return;
	}
	x->refused = create_refused;
	create_at_chosen(x, (unsigned)node);
}

static void create_without_name(struct gateway_call *x)
{
	const char *session = create_session(x), *name = create_text(x, "name"),
		   *once = http_header(x->call->req, "idempotency-key");
	int node = x->claim.nkeys ? (once ? create_own_node(x, "once", once) : -1)
		   : name         ? create_own_node(x, "name", name)
		   : session      ? create_own_node(x, "session", session)
		   : once         ? create_own_node(x, "once", once)
				  : -1;

	if (node >= 0 && once && (x->claim.nkeys || (!name && !session)) &&
	    create_once_begin(x, once, (unsigned)node, create_at))
		return;
	if (node >= 0)
		create_at(x, (unsigned)node);
	else
		create_place(x);
}

/* ---- what the body names ---- */

static void create_named(struct gateway_call *x);

static void create_name_found(struct gateway_call *x, int node)
{
	if (node >= 0)
		create_at(
			x,
			(unsigned)
				node); /* which rejects the second box of that name, or returns the first */
	else
		create_without_name(x);
}

static int create_makes_box(const char *path)
{
	static const char *const all[] = { "/v1/boxes", "/sandboxes", "/v2/sandboxes" };

	for (unsigned i = 0; i < ARRAY_LEN(all); i++)
		if (strcmp(path, all[i]) == 0)
			return 1;
	return 0;
}

/* Checkpoints and volumes stay on their node. A repeated request must reach the node of the first one, so one with an
 * Idempotency-Key goes to the node of the snapshot only. */
static int create_may_move(const struct gateway_call *x)
{
	return create_makes_box(x->call->req->path) && x->gateway->bring &&
	       !create_text(x, "checkpoint") &&
	       !json_array_size(json_object_get(x->doc, "volumes")) &&
	       !json_array_size(json_object_get(x->doc, "volumeMounts")) &&
	       (create_text(x, "snapshot") || create_text(x, "templateID")) &&
	       !http_header(x->call->req, "idempotency-key");
}

static void create_at_source(struct gateway_call *x, const char *text, unsigned node)
{
	char id[ID_MAX + 1];

	snprintf(id, sizeof(id), "%.*s", (int)strcspn(text, ":"), text);
	if (id_valid(id) && create_may_move(x))
		create_snapshot_begin(x, id, node);
	else
		create_at(x, node);
}

/* A node that may have it does not answer. */
static void create_source_missing(struct gateway_call *x)
{
	const char *name = create_text(x, "snapshot");

	if (name && create_may_move(x))
		create_snapshot_from_store(x, name);
	else
		find_fail_missing(x);
}

static void create_source_found(struct gateway_call *x, int node)
{
	if (node >= 0)
		create_at_source(x, x->found_id, (unsigned)node);
	else if (x->missing[0])
		create_source_missing(x);
	else
		create_place(x); /* any node says that it does not exist */
}

static void create_template_found(struct gateway_call *x, int node)
{
	if (node < 0 && x->missing[0])
		find_fail_missing(x);
	else if (node >= 0 && !x->is_common)
		create_at(x, (unsigned)node);
	else
		create_named(x);
}

/* The template of a box, or of the program that a schedule starts; NULL: every node has it. */
static const char *create_template(const struct gateway_call *x)
{
	const json_t *run = json_object_get(x->doc, "run");
	const char *name = create_text(x, "template"), *e2b = create_text(x, "templateID"),
		   *started = json_string_value(json_object_get(run, "template"));

	name = name ? name : e2b ? e2b : started;
	return name && strcmp(name, "base") != 0 ? name : NULL;
}

/* The checkpoint, the snapshot or the first volume of a box; its node must create the box. The box of a pipeline or of
 * an agent: they run on its node. */
static const char *create_source(const struct gateway_call *x, const char **out_collection)
{
	const json_t *volumes = json_object_get(x->doc, "volumes"),
		     *mounts = json_object_get(x->doc, "volumeMounts");
	const json_t *first =
		json_is_array(volumes) ? json_array_get(volumes, 0) : json_array_get(mounts, 0);
	const char *volume = json_is_string(first)
				     ? json_string_value(first)
				     : json_string_value(json_object_get(first, "volume"));
	const char *snapshot = create_text(x, "snapshot"), *e2b = create_text(x, "templateID"),
		   *checkpoint = create_text(x, "checkpoint"), *box = create_text(x, "box");

	if (!volume)
		volume = json_string_value(json_object_get(first, "name"));
	if (x->target.collection && strcmp(x->target.collection, "/v1/volumes") == 0)
		return NULL;
	if (e2b && target_node_of(e2b, strcspn(e2b, ":")) >= 0)
		return e2b; /* a snapshot of E2B */
	*out_collection = box ? "/v1/boxes" : snapshot ? "/v1/snapshots" : "/v1/volumes";
	if (box)
		return box;
	return checkpoint ? checkpoint : snapshot ? snapshot : volume;
}

/* A box by its name, unless the coordinator is asked (claim.c); other objects of the same list. */
static void create_named(struct gateway_call *x)
{
	const char *name = create_text(x, "name");

	if (name && target_is_plain_name(name) && !x->claim.nkeys)
		find_begin(x, x->target.collection ? x->target.collection : "/v1/boxes", name,
			   create_name_found);
	else
		create_without_name(x);
}

static void create_choose(struct gateway_call *x)
{
	const char *collection = "", *source = create_source(x, &collection),
		   *name = create_text(x, "name"), *template = create_template(x);
	int node = source ? target_node_of(source, strcspn(source, ":")) : -1;

	claim_read(x, name && target_is_plain_name(name) ? name : NULL, create_text(x, "session"),
		   create_text(x, "template"));
	if (node >= 0)
		create_at_source(x, source, (unsigned)node);
	else if (source && target_is_plain_name(source) && *collection)
		find_begin(x, collection, source, create_source_found);
	else if (template)
		templates_find(x, template, create_template_found);
	else
		create_named(x);
}

/* ---- the body ---- */

static void create_read_body(struct gateway_call *x)
{
	const struct http_req *r = x->call->req;

	x->body = &r->body;
	x->doc = json_loadb(r->body.p ? r->body.p : "", r->body.len, JSON_REJECT_DUPLICATES, NULL);
}

/* ---- the limit of boxes of the team ---- */

static void create_shared(struct shares_ask *a, int result)
{
	struct gateway_call *x = loop_owner(a, struct gateway_call, share);

	x->has_share = result > 0;
	if (result > 0)
		create_choose(x);
	else
		quota_refuse_box(x->call,
				 result < 0
					 ? "the database of the cluster does not answer, and the "
					   "share of this gateway is used up"
					 : NULL);
}

/* 1: the team may have one more box, or has no limit. 0: create_shared() follows. */
static int create_has_share(struct gateway_call *x)
{
	struct call *c = x->call;
	uint64_t limit = quota_box_limit(c->api, c->who.team);

	if (!limit || !x->gateway->shares || !create_makes_box(c->req->path))
		return 1;
	x->share.done = create_shared;
	x->has_share = shares_take(x->gateway->shares, &x->share, c->who.team, limit);
	return x->has_share;
}

/* 1: requests for this name would be requests for an id of that node. */
static int create_name_is_id(const struct gateway_call *x, const char *name)
{
	int node = name ? target_node_of(name, strlen(name)) : -1;

	return node >= 0 && tunnels_find(x->gateway->tunnels, (unsigned)node);
}

static void create_body_arrived(struct http_req *r)
{
	struct gateway_call *x = ((struct call *)r->user)->state;

	create_read_body(x);
	if (create_name_is_id(x, create_text(x, "name"))) {
		call_error(x->call, 400, "invalid",
			   "this name is an id: it begins with the number of a node",
			   create_text(x, "name"), "choose another name, such as one with a '-'");
		return;
	}
	if (x->target.kind == TARGET_TEMPLATE)
		templates_create(x);
	else if (create_has_share(x))
		create_choose(x);
}

void create_begin(struct gateway_call *x, int is_stream)
{
	struct http_req *r = x->call->req;

	if (is_stream) {
		forward_hold_body(x);
		create_without_name(x);
		return;
	}
	http_want_body(r, HTTP_BODY_WHOLE, x->call->api->conf.json_max);
	r->on_body_end = create_body_arrived;
}

static void create_object_found(struct gateway_call *x, int node)
{
	if (node >= 0)
		forward_begin(x, (unsigned)node);
	else if (x->missing[0])
		find_fail_missing(x);
	else
		create_place(x); /* any node says that it has no such object */
}

static void create_from_body_arrived(struct http_req *r)
{
	struct gateway_call *x = ((struct call *)r->user)->state;
	int is_template = strcmp(x->target.collection, TARGET_TEMPLATES) == 0;
	const char *object;
	int node;

	create_read_body(x);
	object = create_text(x, is_template ? "target" : "box");
	object = object || !is_template ? object : create_text(x, "name");
	node = object && !is_template
		       ? gateway_moved_node(x->gateway->moved, object, strlen(object))
		       : -1;
	if (node >= 0)
		forward_begin(x, (unsigned)node);
	else if (object && is_template)
		templates_find(x, object, create_object_found);
	else if (object && target_is_plain_name(object))
		find_begin(x, x->target.collection, object, create_object_found);
	else
		create_place(x); /* an invalid request: any node says why */
}

void create_from_body(struct gateway_call *x)
{
	http_want_body(x->call->req, HTTP_BODY_WHOLE, x->call->api->conf.json_max);
	x->call->req->on_body_end = create_from_body_arrived;
}

void create_end(struct gateway_call *x)
{
	create_once_end(x);
	create_snapshot_end(x);
	shares_cancel(&x->share);
	if (x->has_share) /* no box was created */
		shares_release(x->gateway->shares, x->call->who.team);
	x->has_share = 0;
	timer_fini(&x->wait);
	json_decref(x->doc);
	json_decref(x->ended);
	x->doc = x->ended = NULL;
}
