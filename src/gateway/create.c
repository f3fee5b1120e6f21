/* create.c - requests that make a new box, or another object of a node.
 *
 *   body -> a snapshot or volume in it: the node that has it
 *        -> a name or a session of a box: claim.c, for the node that placement chooses
 *        -> another name, session, or an Idempotency-Key: its own node, so that a repetition reaches the same one
 *        -> else placement; a node that refuses is followed by the next, PLACE_ATTEMPTS times
 *
 * The own node of a text is the first by a hash of text and number: all gateways choose the same one without
 * asking each other, as long as they are connected to the same nodes. */
#include "gateway/gateway_call.h"
#include "http/client.h"

#include <stdio.h>
#include <string.h>

enum { CREATE_WAIT_MS = 100, CREATE_WAITS = 20, CREATE_START_MS = 3000 };
#define CREATE_MEMORY (UINT64_C(256) << 20) /* of a box whose request does not say it */

static const char *create_text(const struct gateway_call *x, const char *name)
{
	const char *text = json_string_value(json_object_get(x->doc, name));

	return text && *text ? text : NULL;
}

/* ---- the node of a text ---- */

static int create_own_node(struct gateway_call *x, const char *kind, const char *text)
{
	struct tunnel_node *best = NULL;
	uint64_t most = 0;
	char whole[512];

	snprintf(whole, sizeof(whole), "%s %s %.300s", x->call->who.team, kind, text);
	for (struct tunnel_node *n = tunnels_next(x->gateway->tunnels, NULL); n;
	     n = tunnels_next(x->gateway->tunnels, n)) {
		char each[560];
		uint64_t score;

		if (n->state != TUNNEL_UP || n->figures.draining)
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

/* ---- placement ---- */

static void create_place(struct gateway_call *x);

static uint64_t create_memory(const struct gateway_call *x)
{
	const json_t *limits = json_object_get(x->doc, "limits");
	json_int_t n = json_integer_value(json_object_get(limits, "memory"));

	return n > 0 ? (uint64_t)n : CREATE_MEMORY;
}

static void create_fail(struct gateway_call *x, const struct err *e)
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

static void create_wait_over(struct timer *t)
{
	create_place(loop_owner(t, struct gateway_call, wait));
}

/* 1: no node is connected, but one may be in a moment: this server has just started, or nodes connect again. */
static int create_waits(struct gateway_call *x)
{
	const struct gateway *g = x->gateway;
	int may_come =
		loop_now_ms() - g->started_ms < CREATE_START_MS || tunnels_next(g->tunnels, NULL);

	if (place_count(g->place) || !may_come || x->waits++ == CREATE_WAITS)
		return 0;
	timer_init(&x->wait, x->call->api->loop, create_wait_over);
	timer_set(&x->wait, CREATE_WAIT_MS);
	return 1;
}

static void create_place(struct gateway_call *x)
{
	const char *template = create_text(x, "template"), *e2b = create_text(x, "templateID");
	struct place_request r = { .template = template ? template
					       : e2b    ? e2b
							: "",
				   .memory = create_memory(x),
				   .node = -1,
				   .tried = x->tried,
				   .ntried = x->ntried };
	struct err e;
	int node = -1;

	if (x->ntried < PLACE_ATTEMPTS)
		node = place_choose(x->gateway->place, &r, loop_now_ms(), &e);
	else
		err_set(&e, ERR_LIMIT, "%d nodes refused it", PLACE_ATTEMPTS);
	if (node < 0 && create_waits(x))
		return;
	if (node < 0) {
		create_fail(x, &e);
		return;
	}
	x->tried[x->ntried++] = (unsigned)node;
	x->judge = create_judge;
	x->refused = create_refused;
	create_at(x, (unsigned)node);
}

static void create_without_name(struct gateway_call *x)
{
	const char *session = create_text(x, "session"), *name = create_text(x, "name"),
		   *once = http_header(x->call->req, "idempotency-key");
	int node = x->claim.nkeys ? -1
		   : name         ? create_own_node(x, "name", name)
		   : session      ? create_own_node(x, "session", session)
		   : once         ? create_own_node(x, "once", once)
				  : -1;

	if (node >= 0 && once && !name && !session &&
	    create_once_begin(x, once, (unsigned)node, create_at))
		return;
	if (node >= 0)
		create_at(x, (unsigned)node);
	else
		create_place(x);
}

/* ---- what the body names ---- */

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

static void create_source_found(struct gateway_call *x, int node)
{
	struct err e;

	if (node >= 0) {
		create_at(x, (unsigned)node);
		return;
	}
	err_set(&e, ERR_NOT_FOUND, "no node that is connected has the snapshot or volume");
	call_error(x->call, 404, "not_found", "what the box shall be made of was not found", e.msg,
		   "atoll snapshot ls and atoll volume ls show all that exist");
}

/* The snapshot or the first volume of a box; its node must create the box. */
static const char *create_source(const struct gateway_call *x, const char **out_collection)
{
	const json_t *volumes = json_object_get(x->doc, "volumes");
	const json_t *first = json_is_array(volumes) ? json_array_get(volumes, 0) : NULL;
	const char *volume = json_is_string(first)
				     ? json_string_value(first)
				     : json_string_value(json_object_get(first, "volume"));
	const char *snapshot = create_text(x, "snapshot");

	if (strcmp(x->call->req->path, "/v1/volumes") == 0)
		return NULL;
	*out_collection = snapshot ? "/v1/snapshots" : "/v1/volumes";
	return snapshot ? snapshot : volume;
}

static void create_choose(struct gateway_call *x)
{
	const char *collection = "", *source = create_source(x, &collection),
		   *name = create_text(x, "name");
	int node = source ? target_node_of(source, strlen(source)) : -1;

	claim_read(x, name && target_is_plain_name(name) ? name : NULL, create_text(x, "session"),
		   create_text(x, "template"));
	if (node >= 0)
		create_at(x, (unsigned)node);
	else if (source && target_is_plain_name(source))
		find_begin(x, collection, source, create_source_found);
	else if (name && target_is_plain_name(name) && !x->claim.nkeys)
		find_begin(x,
			   strcmp(x->call->req->path, "/v1/volumes") == 0 ? "/v1/volumes"
									  : "/v1/boxes",
			   name, create_name_found);
	else
		create_without_name(x);
}

/* ---- the body ---- */

static void create_body_arrived(struct http_req *r)
{
	struct gateway_call *x = ((struct call *)r->user)->state;

	x->body = &r->body;
	x->doc = json_loadb(r->body.p ? r->body.p : "", r->body.len, JSON_REJECT_DUPLICATES, NULL);
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

static void create_box_found(struct gateway_call *x, int node)
{
	const char *box = create_text(x, "box");

	if (node >= 0)
		forward_begin(x, (unsigned)node);
	else
		call_error(x->call, 404, "not_found", "there is no such box", box, "atoll ls");
}

static void create_from_body_arrived(struct http_req *r)
{
	struct gateway_call *x = ((struct call *)r->user)->state;
	const char *box;
	int node;

	x->body = &r->body;
	x->doc = json_loadb(r->body.p ? r->body.p : "", r->body.len, JSON_REJECT_DUPLICATES, NULL);
	box = create_text(x, "box");
	node = box ? target_node_of(box, strlen(box)) : -1;
	if (node >= 0)
		forward_begin(x, (unsigned)node);
	else if (box && target_is_plain_name(box))
		find_begin(x, "/v1/boxes", box, create_box_found);
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
	timer_fini(&x->wait);
	json_decref(x->doc);
	json_decref(x->ended);
	x->doc = x->ended = NULL;
}
