/* every.c - the same request to every node, for what each node has for itself: package sets, lessons of pipelines. The
 * answer says that it is done only if all nodes have done it.
 *
 *   one node failed             its answer, with its name
 *   one node is not connected   503 with its name, if something is deleted; else it does so when it is used
 *   no node has it              404
 *   else                        the answer of one of them */
#include "api/event_stream.h"
#include "gateway/gateway_call.h"
#include "record/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVERY_MS = 30 * 60 * 1000 }; /* an installation ends before */

struct gateway_every {
	struct fanout fanout;
	struct gateway_call *call;
	struct buf target;
	struct event_stream stream;
	enum event_stream_kind kind;
};

static const char *every_target(void *user, unsigned node)
{
	(void)node;
	return buf_str(&((struct gateway_every *)user)->target);
}

static int every_is_done(const struct fanout_answer *a)
{
	return a->status >= 200 && a->status < 300;
}

/* A set of packages counts as installed for this request if one node did so; the slowest one counts. */
static void every_add_sets(json_t *doc, const json_t *other)
{
	const json_t *more = json_object_get(json_object_get(other, "packages"), "sets");
	json_t *sets = json_object_get(json_object_get(doc, "packages"), "sets"), *one;
	size_t i;

	more = more ? more : json_object_get(other, "sets");
	sets = sets ? sets : json_object_get(doc, "sets");
	json_array_foreach(sets, i, one)
	{
		const json_t *set = json_array_get(more, i);
		json_int_t ms = json_integer_value(json_object_get(set, "ms"));

		if (ms > json_integer_value(json_object_get(one, "ms")))
			json_object_set_new(one, "ms", json_integer(ms));
		if (json_is_true(json_object_get(set, "installed")))
			json_object_set_new(one, "installed", json_true());
	}
}

static void every_send(struct gateway_every *g, int status, json_t *take_doc)
{
	struct call *c = g->call->call;

	if (g->kind == EVENT_STREAM_NONE) {
		if (take_doc)
			call_send(c, status, take_doc);
		else
			call_empty(c, status);
		return;
	}
	event_stream_begin(&g->stream, c->req, g->kind);
	json_object_set_new(take_doc, "type", json_string(status < 300 ? "done" : "error"));
	event_stream_event(&g->stream, take_doc);
	event_stream_end(&g->stream);
}

/* The error of a node, with the name of the node. */
static void every_fail(struct gateway_every *g, const struct fanout_answer *a)
{
	json_t *doc = a->doc ? json_deep_copy(a->doc) : json_object(),
	       *error = json_object_get(doc, "error");

	if (json_is_object(error))
		json_object_set_new(error, "node", json_text(a->name));
	every_send(g, a->status, doc);
}

static void every_fail_missing(struct gateway_every *g, const struct fanout_answer *a)
{
	struct call *c = g->call->call;

	http_set(c->req, "Retry-After", "1");
	call_error(c, 503, "unreachable",
		   "this node did not answer; it is done at the nodes that did", a->name,
		   "send the request again when the node is connected: atoll node ls");
}

static void every_done(struct fanout *f)
{
	struct gateway_every *g = loop_owner(f, struct gateway_every, fanout);
	const struct fanout_answer *done = NULL, *absent = NULL, *failed = NULL, *missing = NULL;
	int deletes = strcmp(g->call->call->req->method, "DELETE") == 0;
	json_t *doc;

	for (unsigned i = 0; i < f->n; i++) {
		const struct fanout_answer *a = &f->v[i], **at = every_is_done(a)   ? &done
								 : a->status == 404 ? &absent
								 : a->status        ? &failed
										    : &missing;

		*at = *at ? *at : a;
	}
	if (failed) {
		every_fail(g, failed);
	} else if (missing && (deletes || !done)) {
		every_fail_missing(g, missing);
	} else if (!done && absent) {
		every_fail(g, absent);
	} else if (!done) {
		forward_fail_unreachable(g->call, "no node is connected");
	} else {
		doc = done->doc ? json_deep_copy(done->doc) : NULL;
		for (unsigned i = 0; doc && i < f->n; i++)
			if (every_is_done(&f->v[i]))
				every_add_sets(doc, f->v[i].doc);
		if (missing)
			http_set(g->call->call->req, "Atoll-Incomplete", "%s", missing->name);
		every_send(g, done->status, doc);
	}
}

static void every_arrived(struct http_req *r)
{
	struct gateway_call *x = ((struct call *)r->user)->state;
	struct gateway_every *g = x->every;

	buf_printf(&g->target, "%s%s%s", r->path, *r->query ? "?" : "", r->query);
	g->fanout = (struct fanout){ .done = every_done,
				     .user = g,
				     .method = r->method,
				     .body = r->body.len ? r->body.p : NULL,
				     .nbody = r->body.len,
				     .timeout_ms = EVERY_MS };
	fanout_begin(&g->fanout, x->gateway->tunnels, x->call->api->loop, every_target,
		     x->identity);
}

void every_begin(struct gateway_call *x)
{
	struct gateway_every *g = calloc(1, sizeof(*g));

	if (!g)
		abort();
	x->every = g;
	g->call = x;
	if (strcmp(x->call->req->method, "POST") == 0 && event_stream_wanted(x->call))
		g->kind = event_stream_wanted(x->call);
	http_want_body(x->call->req, HTTP_BODY_WHOLE, x->call->api->conf.json_max);
	x->call->req->on_body_end = every_arrived;
}

void every_end(struct gateway_call *x)
{
	struct gateway_every *g = x->every;

	if (!g)
		return;
	x->every = NULL;
	fanout_free(&g->fanout);
	buf_fini(&g->target);
	free(g);
}
