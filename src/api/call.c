/* call.c - one request from its head to its answer.
 *
 *   head -> Host, Origin -> route -> key -> role -> quota -> query -> body -> handler -> answer
 *
 * A step that rejects the request answers immediately, with the common error object. A handler that
 * waits sets c->drop, which is called once: when the answer was sent, or when the client has
 * disconnected before that. */
#include "api/auth.h"
#include "api/budget.h"
#include "api/charges.h"
#include "api/plan_limits.h"
#include "api/fields.h"
#include "api/json_reader.h"
#include "api/media_type.h"
#include "api/quota.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "fleet/box.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- the request: parameters, query, memory ---- */

const char *call_param(const struct call *c, unsigned i)
{
	return c->match.params[i];
}

json_t *call_get(const struct call *c, const char *name)
{
	json_t *v = json_object_get(c->body, name);

	return json_is_null(v) ? NULL : v;
}

const char *call_text(const struct call *c, const char *name, const char *otherwise)
{
	json_t *v = call_get(c, name);

	return v ? json_string_value(v) : otherwise;
}

int64_t call_int(const struct call *c, const char *name, int64_t otherwise)
{
	json_t *v = call_get(c, name);

	return v ? json_integer_value(v) : otherwise;
}

int call_flag(const struct call *c, const char *name, int otherwise)
{
	json_t *v = call_get(c, name);

	return v ? json_is_true(v) : otherwise;
}

const char *call_query(const struct call *c, const char *name)
{
	return c->args ? json_string_value(json_object_get(c->args, name))
		       : http_query(c->req, name);
}

int64_t call_query_int(const struct call *c, const char *name, int64_t otherwise)
{
	const json_t *arg = json_object_get(c->args, name);
	const char *v = c->args ? NULL : http_query(c->req, name);

	return v                      ? strtoll(v, NULL, 10)
	       : json_is_integer(arg) ? json_integer_value(arg)
				      : otherwise;
}

int call_query_flag(const struct call *c, const char *name)
{
	const char *v = c->args ? NULL : http_query(c->req, name);

	if (c->args)
		return json_is_true(json_object_get(c->args, name));

	return v && (*v == '1' || *v == 't');
}

void *call_alloc(struct call *c, size_t n)
{
	return http_alloc(c->req, n);
}

static void run_handler(struct call *c)
{
	struct trace_context before;

	if (!(c->row->flags & ROUTE_NO_FLUSH))
		run_writer_flush(&c->api->fleet.run_writer);
	before = trace_enter(&c->trace);
	if (!call_needs_adopt(c))
		c->row->run(c);
	trace_leave(&before);
}

int principal_is_operator(const struct principal *w)
{
	return w->role == ROLE_OWNER && !strcmp(w->team, TEAM_DEFAULT) && !w->box[0];
}

/* ---- from the head to the handler ---- */

struct call_document { /* a document of the reader, until the loop serves the connection */
	json_t *doc;
	struct err why;
};

static void call_trace(const struct call *c)
{
	const struct http_req *r = c->req;
	const char *route = c->row ? c->row->pattern : "";
	struct trace_span *s;
	char name[TRACE_NAME];

	if (!c->trace.is_recorded)
		return;
	snprintf(name, sizeof(name), "%s%s%s", r->method, *route ? " " : "", route);
	s = trace_add(&c->trace, name, TRACE_SERVER, c->trace_ns, trace_now_ns());
	trace_text(s, "http.request.method", r->method);
	if (*route)
		trace_text(s, "http.route", route);
	if (r->status)
		trace_number(s, "http.response.status_code", r->status);
	trace_text(s, "atoll.request", c->id);
	if (c->who.team[0])
		trace_text(s, "atoll.team", c->who.team);
	if (r->status >= 500)
		trace_failed(s);
}

static void call_over(struct http_req *r)
{
	struct call *c = r->user;
	struct api *a = c->api;
	struct box *b;
	unsigned class = (unsigned)r->status / 100;

	if (c->reading)
		json_job_cancel(c->reading);
	if (c->drop)
		c->drop(c);
	if (c->leave)
		c->leave(c);
	call_account(c, !r->status ? "left" : r->status < 400 ? "ok" : "error");
	b = c->held[0] ? fleet_find(&a->fleet, c->held) : NULL;
	if (b)
		box_release(b);
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	json_decref(c->body);
	if (c->parsed)
		json_decref(c->parsed->doc);
	a->by_status[class < 6 ? class : 0]++;
	fleet_observe(&a->latency, (loop_now_ms() - r->began_ms) * 1000);
	call_trace(c);
	log_debug("request", LOG_S("request", c->id), LOG_S("method", r->method),
		  LOG_S("path", r->path), LOG_U("status", (uint64_t)r->status),
		  LOG_S("who", c->who.id), LOG_U("ms", loop_now_ms() - r->began_ms));
}

/* An id for the logs, not a secret: a random start and a counter, without a system call. */
static void number_call(struct call *c)
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
	static uint64_t next;
	uint64_t n;
	struct err e;

	if (!next && id_random(&next, sizeof(next), &e) < 0)
		next = loop_now_ms();
	n = ++next * 0x9e3779b97f4a7c15u; /* so that consecutive ids differ in most digits */
	for (unsigned i = 0; i < ID_LEN; i++, n >>= 5)
		c->id[i] = digits[n & 31];
	c->id[ID_LEN] = 0;
}

static struct call *call_new(struct api *a, struct http_req *r)
{
	struct call *c = http_alloc(r, sizeof(*c));

	memset(c, 0, sizeof(*c));
	c->api = a;
	c->req = r;
	c->next = a->calls;
	c->at = &a->calls;
	if (c->next)
		c->next->at = &c->next;
	a->calls = c;
	r->user = c;
	r->on_over = call_over;
	number_call(c);
	trace_request(&c->trace, http_header(r, "traceparent"));
	if (c->trace.is_recorded)
		c->trace_ns = trace_now_ns();
	return c;
}

/* Parsing this takes less time than handing it to another thread. */
enum { INLINE_JSON = 16 << 10 };

/* 0: the box that the call holds has ended while the request waited, and that was answered.
 * Surfaces have a pointer to the box. */
static int call_has_box(struct call *c)
{
	if (!c->held[0] || fleet_find(&c->api->fleet, c->held))
		return 1;
	call_no_box(c, c->held);
	return 0;
}

static void json_parsed(struct http_req *r)
{
	struct call *c = r->user;
	json_t *doc = c->parsed->doc;

	if (!call_has_box(c))
		return;
	c->parsed->doc = NULL;
	c->read(c, doc, &c->parsed->why);
}

static void json_read(struct json_job *j, json_t *take_doc, const struct err *why)
{
	struct call *c = j->user;

	c->reading = NULL;
	c->parsed = call_alloc(c, sizeof(*c->parsed));
	*c->parsed = (struct call_document){ take_doc, *why };
	http_continue(c->req, json_parsed);
}

void call_read_json(struct call *c, struct buf *take_text,
		    void (*then)(struct call *c, json_t *take_doc, const struct err *why))
{
	struct err e = { 0 };
	json_t *doc;

	if (!call_has_box(c)) {
		buf_fini(take_text);
		return;
	}
	c->read = then;
	if (take_text->len > INLINE_JSON &&
	    json_reader_read(c->api->reader, take_text, json_read, c, &c->reading) == 0)
		return;
	doc = take_text->len ? fields_parse(take_text->p, take_text->len, &e) : json_object();
	buf_fini(take_text);
	then(c, doc, &e);
}

static void body_read(struct call *c, json_t *take_doc, const struct err *why)
{
	struct err e;

	c->body = take_doc;
	if (!c->body) {
		call_fail(c, why);
		return;
	}
	if (fields_check(c->body, c->row->body, "", &e) < 0) {
		call_error(c, 400, "invalid", e.msg, NULL, fields_hint(c->body, c->row->body));
		return;
	}
	fields_prune(c->body, c->row->body);
	run_handler(c);
}

static void body_arrived(struct http_req *r)
{
	call_read_json(r->user, &r->body, body_read);
}

/* The matcher needs the same table in its own format. */
static void call_prepare_routes(struct api_table *t)
{
	if (t->routes)
		return;
	t->routes = calloc(t->n, sizeof(*t->routes));
	if (!t->routes)
		abort();
	for (unsigned i = 0; i < t->n; i++) {
		assert((t->rows[i].scope == SCOPE_BOX) == !!strstr(t->rows[i].pattern, "/{box}"));
		t->routes[i] = (struct route){ t->rows[i].method, t->rows[i].pattern, &t->rows[i] };
	}
}

int call_has_path(struct api_table *t, const struct http_req *r)
{
	struct route_match m;
	int status;

	call_prepare_routes(t);
	status = route_find(t->routes, t->n, r->method, r->path, &m);
	return status == 0 || status == 405;
}

static int find_row(struct call *c, struct api_table *t)
{
	int status;

	call_prepare_routes(t);
	status = route_find(t->routes, t->n, c->req->method, c->req->path, &c->match);
	if (status == 0)
		c->row = c->match.route->target;
	return status;
}

static void no_route(struct call *c, int status)
{
	if (status == 405)
		http_set(c->req, "Allow", "%s", c->match.allow);
	call_error(c, status,
		   status == 405   ? "method"
		   : status == 404 ? "not_found"
				   : "invalid",
		   status == 405   ? "this path does not support that method"
		   : status == 404 ? "there is nothing at this path"
				   : "this path is malformed",
		   c->req->path, "all paths: GET /openapi.json");
}

static int call_may(struct call *c)
{
	static const char *const roles[] = {
		[NEED_VIEWER] = "viewer", [NEED_EDITOR] = "editor", [NEED_OWNER] = "owner"
	};
	int enough = (int)c->who.role >= (int)c->row->need - 1;
	int bound = c->who.box[0] && c->row->scope == SCOPE_TEAM;
	char why[80];

	if (enough && !bound)
		return 1;
	snprintf(why, sizeof(why), bound ? "the key is bound to box %s" : "the key's role is %s",
		 bound ? c->who.box : store_role_name(c->who.role));
	call_error(c, 403, "denied",
		   bound ? "this key is for one box only" : "this needs another role", why,
		   bound ? NULL : roles[c->row->need]);
	return 0;
}

/* A valid key is never rejected because other clients of the same address have sent wrong ones.
 * Each wrong key costs its sender a connection, and the answer reveals nothing new. */
void call_fail_throttled(struct call *c)
{
	http_set(c->req, "Retry-After", "1");
	c->req->keep_alive = 0;
	call_error(c, 429, "too_many_failures",
		   "too many wrong keys, tokens or signatures from this address", NULL,
		   "wait a second, and use a key that `atoll key ls` lists");
}

void call_refuse_key(struct call *c, int status, const char *why)
{
	if (auth_has_key(c->req) && auth_failed(c->api, c->req)) {
		call_fail_throttled(c);
		return;
	}
	http_set(c->req, "WWW-Authenticate", "Bearer realm=\"atoll\"");
	call_error(
		c, status, "unauthorized", "missing or invalid API key", why,
		"send 'X-API-Key: KEY' or 'Authorization: Bearer KEY'; make a key: atoll key new NAME");
}

int call_authorize(struct call *c)
{
	const char *why;
	int status;

	if (c->row && (c->row->need == NEED_NOTHING ||
		       (c->api->conf.metrics_public && c->row->flags & ROUTE_METRICS)))
		return 1;
	status = auth_principal(c->api, c->req, &c->who, &why);
	if (status) {
		call_refuse_key(c, status, why);
		return 0;
	}
	return !c->row || (call_may(c) && quota_request(c));
}

static void call_admitted(struct http_req *r)
{
	struct call *c = r->user;
	struct err e;

	if (!call_has_box(c))
		return;
	if (c->no_route) {
		no_route(c, c->no_route);
		return;
	}
	if (fields_check_query(r, c->row->query, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (c->row->body && !media_type_check(c))
		return;
	if (c->row->body) {
		http_want_body(r, HTTP_BODY_WHOLE,
			       fields_most(c->row->body, c->api->conf.json_max));
		r->on_body_end = body_arrived;
		return;
	}
	run_handler(c);
}

void call_serve(struct call *c, struct api_table *t)
{
	c->format = t->format;
	c->no_route = find_row(c, t);
	/* Without a key a client does not learn which paths exist. */
	if (t->format && t->format->admit ? t->format->admit(c) : call_authorize(c))
		http_charge(c->req, fleet_budget(&c->api->fleet, c->who.team), call_admitted);
}

struct call *call_internal(struct api *a, struct http_req *r, const struct principal *who,
			   const struct api_format *format)
{
	struct call *c = call_new(a, r);

	c->format = format;
	c->who = *who;
	if (find_row(c, a->native) != 0)
		abort(); /* the path is a constant of the caller */
	return c;
}

static int a_surface_takes(struct call *c)
{
	for (const struct api_surface *const *d = c->api->surfaces; d && *d; d++)
		if ((*d)->take(c))
			return 1;
	return 0;
}

static void on_head(struct http_req *r)
{
	struct api *a = r->server->user;
	struct call *c = call_new(a, r);
	const char *why;
	int status, at_host;

	http_set(r, "X-Request-Id", "%s", c->id);
	status = at_host = auth_host(a, r, &why);
	if (status == 0 && a_surface_takes(c))
		return;
	if (status == 0)
		status = auth_origin(a, r, &why);
	if (status && at_host)
		call_error(c, status, "denied", "not at this address", why,
			   "names it answers to: serve.domain in config.toml");
	else if (status)
		call_error(c, status, "denied", "not from this web page", why,
			   "pages of other origins that may call: serve.origins in config.toml");
	else
		call_serve(c, a->native);
}

/* ---- the api ---- */

/* The client reconnects to the next server and continues at the position where this
 * stream ended. */
static void end_stream(struct call *c)
{
	if (c->drop)
		c->drop(c);
	c->drop = NULL;
	c->req->on_drain = NULL;
	c->endless = 0;
	http_end(c->req);
}

/* Once a second: closes each stream whose key was revoked since it started. */
static void on_second(struct timer *t)
{
	struct api *a = loop_owner(t, struct api, second);

	for (struct call *c = a->calls, *next; c; c = next) {
		next = c->next;
		if (c->req->status && !auth_still(a, &c->who))
			http_abort(c->req);
		else if (c->endless && a->http.draining)
			end_stream(c);
	}
	fleet_check_clock(&a->fleet);
	quota_second(a);
	charges_second(a);
	if (a->on_second)
		a->on_second(a);
	timer_set(&a->second, 1000);
}

int api_init(struct api *a, struct err *e)
{
	a->auth = auth_new();
	a->reader = json_reader_new(a->loop);
	a->started_ns = fleet_now_ns();
	a->http.on_head = on_head;
	a->http.user = a;
	a->http.always = API_ALWAYS;
	timer_init(&a->second, a->loop, on_second);
	timer_set(&a->second, 1000);
	charges_init(a);
	budget_init(a);
	plan_limits_init(a);
	return quota_init(a, e);
}

void api_fini(struct api *a)
{
	timer_fini(&a->second);
	quota_fini(a);
	auth_free(a->auth);
	json_reader_free(a->reader);
}
