/* call.c - one request from its head to its answer.
 *
 *   head -> Host, Origin -> route -> key -> role -> quota -> query -> body -> handler -> answer
 *
 * Every step that refuses answers at once, in the one shape of errors. A handler that waits sets
 * c->drop, which is called once: when the answer is out, or when the client has left before. */
#include "api/auth.h"
#include "agent/pipeline.h"
#include "api/batch.h"
#include "api/fields.h"
#include "api/gauge.h"
#include "api/json_reader.h"
#include "api/languages.h"
#include "api/ops.h"
#include "api/pipelines.h"
#include "api/quota.h"
#include "base/log.h"
#include "base/own.h"
#include "base/units.h"
#include "box/record.h"
#include "fleet/batch.h"
#include "fleet/berth.h"
#include "fleet/snap.h"
#include "store/audit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CALL_JSON (JSON_COMPACT | RECORD_DIGITS)

/* ---- answering ---- */

json_t *call_error_json(const char *code, const char *message, const char *why, const char *hint)
{
	json_t *hints = json_array(), *text = changes_text(message);

	if (hint && *hint)
		json_array_append_new(hints, json_string(hint));
	return json_pack("{s:{s:s, s:o, s:o, s:o, s:s}}", "error", "code", code, "message", text,
			 "why", changes_text(why ? why : ""), "hints", hints, "doc",
			 "docs/daemon.md");
}

/* Committed before the answer that speaks of it. */
static void account(struct call *c, const char *result)
{
	unsigned n = c->match.nparams;

	if (c->row && c->row->action && !c->audited && c->who.id[0])
		call_audit(c, c->row->action, n ? c->match.params[n - 1] : "", result);
}

/* With a newline behind it, for those who look at it in a terminal. */
void call_send(struct call *c, int status, json_t *take_doc)
{
	size_t n = json_dumpb(take_doc, c->api->text, sizeof(c->api->text) - 1, CALL_JSON);
	char *text = n < sizeof(c->api->text) ? c->api->text : malloc(n + 1);

	account(c, status < 400 ? "ok" : "error");
	if (!text || n == 0)
		abort(); /* our documents are always valid */
	if (text != c->api->text)
		n = json_dumpb(take_doc, text, n, CALL_JSON);
	json_decref(take_doc);
	text[n] = '\n';
	http_reply(c->req, status, "application/json", text, n + 1);
	if (text != c->api->text)
		free(text);
}

void call_json(struct call *c, int status, json_t *take_doc)
{
	if (c->manner && c->manner->json)
		c->manner->json(c, status, take_doc);
	else
		call_send(c, status, take_doc);
}

void call_empty(struct call *c, int status)
{
	account(c, "ok");
	if (c->manner && c->manner->json)
		c->manner->json(c, status, NULL);
	else
		http_reply(c->req, status, NULL, NULL, 0);
}

void call_error(struct call *c, int status, const char *code, const char *message, const char *why,
		const char *hint)
{
	account(c, code);
	if (c->manner && c->manner->error)
		c->manner->error(c, status, code, message, why, hint);
	else
		call_json(c, status, call_error_json(code, message, why, hint));
}

int call_status(const struct err *e)
{
	switch (e->kind) {
	case ERR_INVALID:
		return 400;
	case ERR_NOT_FOUND:
		return 404;
	case ERR_CONFLICT:
		return 409;
	case ERR_LIMIT:
		return e->sys == E2BIG ? 413 : 429;
	case ERR_DENIED:
		return 403;
	default:
		return e->sys == ENOSPC || e->sys == EDQUOT ? 507 :
		       e->sys == EBUSY			    ? 503 :
							      500;
	}
}

void call_fail(struct call *c, const struct err *e)
{
	int status = call_status(e);

	if (status == 500)
		log_error("request failed", LOG_S("request", c->id), LOG_S("error", e->msg));
	call_error(c, status, status == 507 ? "no_space" : err_kind_name(e->kind), e->msg, NULL,
		   NULL);
}

void call_list(struct call *c, json_t *take_items, const char *next)
{
	call_json(c, 200,
		  json_pack("{s:o, s:s?}", "items", take_items, "next", next && *next ? next : NULL));
}

/* ---- versions ---- */

/* Of a box whose lifetime counts from its last use, "ends" moves with every request, this one included. */
static char *etag_text(const json_t *doc)
{
	const char *from = json_string_value(json_object_get(doc, "lifetime_from"));
	json_t *kept = json_copy((json_t *)doc);
	char *text;

	if (from && !strcmp(from, "use"))
		json_object_del(kept, "ends");
	text = json_dumps(kept, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(kept);
	return text;
}

static void etag_of(const json_t *doc, char out[40])
{
	auto_free char *text = etag_text(doc);
	uint8_t hash[SHA256_BYTES];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, text, text ? strlen(text) : 0);
	sha256_end(&s, hash);
	*out++ = '"';
	for (unsigned i = 0; i < 12; i++, out += 2)
		snprintf(out, 3, "%02x", hash[i]);
	snprintf(out, 2, "\"");
}

static int names(const char *list, const char *etag)
{
	return !strcmp(list, "*") || strstr(list, etag) != NULL;
}

int call_fresh(struct call *c, const json_t *doc)
{
	const char *has = http_header(c->req, "if-none-match");
	char etag[40];

	etag_of(doc, etag);
	http_set(c->req, "ETag", "%s", etag);
	if (!has || !names(has, etag))
		return 0;
	call_empty(c, 304);
	return 1;
}

int call_matches(struct call *c, const json_t *current)
{
	const char *wants = http_header(c->req, "if-match");
	char etag[40];

	etag_of(current, etag);
	if (!wants || names(wants, etag))
		return 1;
	call_error(c, 412, "changed", "it has changed since you looked", etag,
		   "read it again and decide anew");
	return 0;
}

/* ---- asking ---- */

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
	return c->args ? json_string_value(json_object_get(c->args, name)) :
			 http_query(c->req, name);
}

int64_t call_query_int(const struct call *c, const char *name, int64_t otherwise)
{
	const json_t *arg = json_object_get(c->args, name);
	const char *v = c->args ? NULL : http_query(c->req, name);

	return v		   ? strtoll(v, NULL, 10) :
	       json_is_integer(arg) ? json_integer_value(arg) :
				      otherwise;
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

void call_hold(struct call *c, struct berth *b)
{
	if (c->held[0])
		return;
	snprintf(c->held, sizeof(c->held), "%s", b->row.id);
	berth_hold(b);
}

void call_is_paused(struct call *c, const struct berth *b)
{
	call_error(c, 409, "paused", "the box is paused: nothing in it answers", b->row.id,
		   "POST /v1/boxes/{box}/resume");
}

struct berth *call_any(struct call *c, unsigned param)
{
	struct berth *b = call_look(c, param);

	if (b)
		call_hold(c, b);
	return b;
}

struct berth *call_box(struct call *c, unsigned param)
{
	struct berth *b = call_look(c, param);

	if (b && b->state == BERTH_PAUSED) {
		call_is_paused(c, b);
		return NULL;
	}
	if (b)
		call_hold(c, b);
	return b;
}

/* ---- a box that is not there any more ---- */

static const char *ended_because(const struct store_box *row, char out[80])
{
	static const struct {
		const char *cause, *sentence;
	} known[] = {
		{ "exit", "its work was done" },
		{ "operator", "it was deleted" },
		{ "memory", "it was out of memory" },
		{ "cpu", "it had used its CPU time" },
		{ "host", "its processes were ended from outside, or the host was restarted" },
	};
	char time[UNITS_TEXT];

	if (!strcmp(row->cause, "lifetime") || !strcmp(row->cause, "idle")) {
		int idle = *row->cause == 'i';

		units_time(time, 1000 * (idle ? row->idle_ms : row->lifetime_ms));
		snprintf(out, 80, idle ? "it was not used for %s" : "its lifetime of %s was over", time);
		return out;
	}
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].cause, row->cause))
			return known[i].sentence;
	return row->cause;
}

int call_ended(const struct api *a, const struct who *who, const char *box, struct err *out, json_t **out_when)
{
	struct store_box row = { 0 };
	char why[80];
	json_t *when;
	struct err e;

	if (store_box_gone(a->store, who->team, box, &row, &e) < 0)
		return 0;
	if (who->box[0] && strcmp(who->box, row.id) != 0) {
		store_box_fini(&row);
		return 0;
	}
	when = record_when((uint64_t)row.ended_ns);
	err_set(out, ERR_NOT_FOUND, "box %s ended at %s: %s", box, json_string_value(when), ended_because(&row, why));
	if (out_when)
		*out_when = json_pack("{s:O, s:s}", "ended_at", when, "cause", row.cause);
	json_decref(when);
	store_box_fini(&row);
	return 1;
}

void call_no_box(struct call *c, const char *box)
{
	const char *hint = "list those there are: GET /v1/boxes", *cause;
	json_t *when, *doc;
	struct err e;

	if (!call_ended(c->api, &c->who, box, &e, &when)) {
		call_error(c, 404, "not_found", "there is no such box", box, "list them: GET /v1/boxes");
		return;
	}
	cause = json_string_value(json_object_get(when, "cause"));
	if (cause && (!strcmp(cause, "lifetime") || !strcmp(cause, "idle")))
		hint = "a box that lives longer: {\"lifetime_ms\": N}, or \"on_timeout\": \"keep\"";
	if (c->manner && c->manner->error) {
		call_error(c, 404, "box_ended", e.msg, box, hint);
	} else {
		doc = call_error_json("box_ended", e.msg, box, hint);
		json_object_update(json_object_get(doc, "error"), when);
		account(c, "box_ended");
		call_json(c, 404, doc);
	}
	json_decref(when);
}

struct berth *call_look(struct call *c, unsigned param)
{
	struct berth *b = fleet_named(&c->api->fleet, c->who.team, call_param(c, param));

	if (b && (b->state == BERTH_RUNNING || b->state == BERTH_KEPT || b->state == BERTH_PAUSED) &&
	    (!c->who.box[0] || !strcmp(c->who.box, b->row.id)))
		return b;
	if (b && b->late) { /* it is there, and takes no connection */
		http_set(c->req, "Retry-After", "1");
		call_error(c, 503, "busy", "the box does not answer right now", b->row.id,
			   "ask again in a second");
		return NULL;
	}
	call_no_box(c, call_param(c, param));
	return NULL;
}

/* ---- a box that another front made ---- */

static void fetched(struct berth_wait *w, struct berth *b, const struct err *e)
{
	struct call *c = *(struct call **)(w + 1);

	(void)b;
	(void)e; /* what became of it is for the handler to say */
	c->drop = NULL;
	c->row->run(c);
}

static void stop_fetching(struct call *c)
{
	berth_wait_cancel(c->fetching);
}

static struct berth_wait *fetch_wait(struct call *c)
{
	struct berth_wait *w = call_alloc(c, sizeof(*w) + sizeof(c));

	*w = (struct berth_wait){ .done = fetched };
	memcpy(w + 1, &c, sizeof(c));
	c->fetching = w;
	c->fetched = 1;
	c->drop = stop_fetching;
	return w;
}

int call_fetch(struct call *c, struct store_box *take_row)
{
	struct fleet *f = &c->api->fleet;
	struct berth *b = fleet_find(f, take_row->id);

	/* A body that comes in pieces cannot wait for its handler. */
	if (c->fetched || c->row->how == HTTP_BODY_STREAM || take_row->state == STORE_BOX_GONE ||
	    strcmp(take_row->boot, f->boot) != 0 || (b && b->state != BERTH_MAKING)) {
		store_box_fini(take_row);
		return 0;
	}
	if (b) {
		store_box_fini(take_row);
		berth_await(b, fetch_wait(c));
	} else {
		berth_restore(f, take_row, fetch_wait(c));
	}
	return 1;
}

int call_fetches(struct call *c)
{
	const char *name = c->match.params[0];
	struct store_box row = { 0 };
	struct berth *b;
	struct err e;

	if (!strstr(c->row->pattern, "/{box}") || !c->match.nparams)
		return 0;
	b = fleet_named(&c->api->fleet, c->who.team, name);
	if (b && b->state != BERTH_MAKING)
		return 0;
	if ((!id_valid(name) || store_box_get(c->api->store, name, &row, &e) < 0) &&
	    store_box_by_name(c->api->store, c->who.team, name, &row, &e) < 0)
		return 0;
	if (strcmp(row.team, c->who.team) != 0) {
		store_box_fini(&row);
		return 0;
	}
	return call_fetch(c, &row);
}

/* Whoever reads finds the ends of all that has ended. These read none of them, or settle themselves. */
static int reads_ends(const struct api_route *row)
{
	static const char *const none[] = { "exec.start", "box.create", "box.delete" };

	for (unsigned i = 0; row->action && i < ARRAY_LEN(none); i++)
		if (!strcmp(row->action, none[i]))
			return 0;
	return 1;
}

static void run_handler(struct call *c)
{
	if (reads_ends(c->row))
		ledger_settle(&c->api->fleet.ledger);
	if (!call_fetches(c))
		c->row->run(c);
}

/* ---- the audit ---- */

/* A stranger's text as the store takes it, cut. */
static void plain(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text ? text : "");
	for (; *out; out++)
		if ((unsigned char)*out < 0x20 || (unsigned char)*out > 0x7e)
			*out = '?';
}

void api_audit(struct api *a, const struct who *who, const char *action, const char *subject,
	       const char *result, json_t *take_detail)
{
	struct store_audit row = { .at_ns = fleet_now_ns() };
	auto_free char *detail = take_detail ? json_dumps(take_detail, JSON_COMPACT) : NULL;
	struct err e;

	json_decref(take_detail);
	row.detail = detail;

	snprintf(row.who, sizeof(row.who), "%s", who->id);
	snprintf(row.team, sizeof(row.team), "%s", who->team);
	snprintf(row.action, sizeof(row.action), "%s", action);
	plain(row.subject, sizeof(row.subject), subject);
	snprintf(row.result, sizeof(row.result), "%s", result);
	if (store_audit_add(a->store, &row, &e) < 0)
		log_error("audit row lost", LOG_S("action", action), LOG_S("error", e.msg));
}

void call_audit(struct call *c, const char *action, const char *subject, const char *result)
{
	call_audit_more(c, action, subject, result, NULL);
}

void call_audit_more(struct call *c, const char *action, const char *subject, const char *result,
		     json_t *take_detail)
{
	json_t *detail = take_detail ? take_detail : json_object();

	json_object_set_new(detail, "request", json_string(c->id));
	if (c->held[0])
		json_object_set_new(detail, "box", json_string(c->held));
	if (c->row && c->row->action && !strcmp(c->row->action, action))
		c->audited = 1;
	api_audit(c->api, &c->who, action, subject, result, detail);
}

int who_operates(const struct who *w)
{
	return w->role == ROLE_OWNER && !strcmp(w->team, TEAM_DEFAULT) && !w->box[0];
}

/* ---- on the way ---- */

static void call_over(struct http_req *r)
{
	struct call *c = r->user;
	struct api *a = c->api;
	struct berth *b;
	unsigned class = (unsigned)r->status / 100;

	if (c->reading)
		json_job_cancel(c->reading);
	if (c->drop)
		c->drop(c);
	if (c->leave)
		c->leave(c);
	account(c, !r->status ? "left" : r->status < 400 ? "ok" : "error");
	b = c->held[0] ? fleet_find(&a->fleet, c->held) : NULL;
	if (b)
		berth_release(b);
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	json_decref(c->body);
	a->by_status[class < 6 ? class : 0]++;
	fleet_observe(&a->latency, (loop_now_ms() - r->began_ms) * 1000);
	log_debug("request", LOG_S("request", c->id), LOG_S("method", r->method),
		  LOG_S("path", r->path), LOG_U("status", (uint64_t)r->status),
		  LOG_S("who", c->who.id), LOG_U("ms", loop_now_ms() - r->began_ms));
}

/* A number for the logs, not a secret: a random start and a counter, no system call. */
static void number_call(struct call *c)
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
	static uint64_t next;
	uint64_t n;
	struct err e;

	if (!next && id_random(&next, sizeof(next), &e) < 0)
		next = loop_now_ms();
	n = ++next * 0x9e3779b97f4a7c15u; /* so that neighbours do not look alike */
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
	return c;
}

enum { INLINE_JSON = 16 << 10 }; /* what is parsed in less time than two threads need to meet */

static void json_read(struct json_job *j, json_t *take_doc, const struct err *why)
{
	struct call *c = j->user;

	c->reading = NULL;
	c->read(c, take_doc, why);
}

void call_read_json(struct call *c, struct buf *take_text,
		    void (*then)(struct call *c, json_t *take_doc, const struct err *why))
{
	struct err e = { 0 };
	json_t *doc;

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

static int find_row(struct call *c, struct api_table *t)
{
	int status;

	if (!t->routes) { /* the matcher wants its own shape of the same table */
		t->routes = calloc(t->n, sizeof(*t->routes));
		if (!t->routes)
			abort();
		for (unsigned i = 0; i < t->n; i++)
			t->routes[i] = (struct route){ t->rows[i].method, t->rows[i].pattern,
						       &t->rows[i] };
	}
	status = route_find(t->routes, t->n, c->req->method, c->req->path, &c->match);
	if (status == 0)
		c->row = c->match.route->target;
	return status;
}

static void no_route(struct call *c, int status)
{
	if (status == 405)
		http_set(c->req, "Allow", "%s", c->match.allow);
	call_error(c, status, status == 405 ? "method" : status == 404 ? "not_found" : "invalid",
		   status == 405 ? "this path does not take that method" :
		   status == 404 ? "there is nothing at this path" :
				   "this path is malformed",
		   c->req->path, "all paths: GET /openapi.json");
}

static int may(struct call *c)
{
	static const char *const roles[] = { [NEED_VIEWER] = "viewer",
					     [NEED_EDITOR] = "editor",
					     [NEED_OWNER] = "owner" };
	int enough = (int)c->who.role >= (int)c->row->need - 1;
	/* A key that is bound to a box: only below that box. */
	int bound = c->who.box[0] && !strstr(c->row->pattern, "/{box}");
	char why[80];

	if (enough && !bound)
		return 1;
	snprintf(why, sizeof(why), bound ? "the key is bound to box %s" : "the key's role is %s",
		 bound ? c->who.box : store_role_name(c->who.role));
	call_error(c, 403, "denied", bound ? "this key is for one box only" : "this needs another role",
		   why, bound ? NULL : roles[c->row->need]);
	return 0;
}

/* A right key is never refused for the wrong ones that others of its address have sent; a wrong one costs
 * a connection each and tells nothing new. */
void call_slow(struct call *c)
{
	http_set(c->req, "Retry-After", "1");
	c->req->keep_alive = 0;
	call_error(c, 429, "too_many_failures",
		   "too many wrong keys, tokens or signatures from this address", NULL,
		   "wait a second, and use a key that `atoll key ls` lists");
}

int call_admit(struct call *c)
{
	const char *why;
	int status;

	if (c->row && (c->row->need == NEED_NOTHING ||
		       (c->api->conf.metrics_public && c->row->run == ops_metrics)))
		return 1;
	status = auth_who(c->api, c->req, &c->who, &why);
	if (status && auth_has_key(c->req) && auth_failed(c->api, c->req)) {
		call_slow(c);
		return 0;
	}
	if (status) {
		http_set(c->req, "WWW-Authenticate", "Bearer realm=\"atoll\"");
		call_error(c, status, "unauthorized", "who are you?", why,
			   "make a key: atoll key new NAME");
		return 0;
	}
	return !c->row || (may(c) && quota_request(c));
}

/* ---- what a body may be ---- */

static int is_type(const char *given, const char *type)
{
	size_t n = strlen(type);

	return !strncasecmp(given, type, n) && (!given[n] || strchr("; \t", given[n]));
}

static int is_json_type(const char *type)
{
	size_t n = strcspn(type, "; \t");

	return is_type(type, "application/json") || is_type(type, "text/json") ||
	       (n > 17 && !strncasecmp(type, "application/", 12) && !strncasecmp(type + n - 5, "+json", 5));
}

/* A page of another site can make a browser send a body of three types without asking first: text/plain,
 * multipart/form-data, application/x-www-form-urlencoded, and one without a type. It cannot add a key's
 * header to that. curl -d and some libraries name the form type, or none, for every body; they are
 * believed when the request has a credential in a header of its own (or came by the unix socket, which
 * no page reaches) and nothing says that a page sent it. */
static int is_no_page(const struct http_req *r)
{
	const char *site = http_header(r, "sec-fetch-site");

	if (http_header(r, "origin") || (site && strcasecmp(site, "none") && strcasecmp(site, "same-origin")))
		return 0;
	return r->unix_peer || http_header(r, "authorization") || http_header(r, "x-api-key") ||
	       http_header(r, "x-access-token") || http_header(r, "e2b-traffic-access-token");
}

/* 0: not one of a route that takes JSON; answered. */
static int check_type(struct call *c)
{
	const struct http_req *r = c->req;
	const char *type = http_header(r, "content-type"), *coding = http_header(r, "content-encoding");
	char why[160];

	if (r->length == 0)
		return 1;
	if (coding && *coding && strcasecmp(coding, "identity") != 0) {
		snprintf(why, sizeof(why), "Content-Encoding: %.100s", coding);
		call_error(c, 415, "media_type", "the body must not be compressed", why,
			   "send it as it is, without Content-Encoding");
		return 0;
	}
	if (type && *type ? is_json_type(type) : is_no_page(r))
		return 1;
	if (type && is_type(type, "application/x-www-form-urlencoded") && is_no_page(r))
		return 1;
	snprintf(why, sizeof(why), type ? "Content-Type: %.100s" : "no Content-Type%.0s", type ? type : "");
	http_set(c->req, "Accept-Post", "application/json");
	call_error(c, 415, "media_type", "the body must be JSON", why,
		   "-H 'Content-Type: application/json'");
	return 0;
}

void call_serve(struct call *c, struct api_table *t)
{
	struct http_req *r = c->req;
	struct err e;
	int status;

	c->manner = t->manner;
	status = find_row(c, t);
	/* Without a key nobody learns which paths there are. */
	if (!(t->manner && t->manner->admit ? t->manner->admit(c) : call_admit(c)))
		return;
	if (status) {
		no_route(c, status);
		return;
	}
	if (fields_check_query(r, c->row->query, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (c->row->body && !check_type(c))
		return;
	if (c->row->body) {
		http_want_body(r, HTTP_BODY_WHOLE, fields_most(c->row->body, c->api->conf.json_max));
		r->on_body_end = body_arrived;
		return;
	}
	run_handler(c);
}

static int a_door_takes(struct call *c)
{
	for (const struct api_door *const *d = c->api->doors; d && *d; d++)
		if ((*d)->take(c))
			return 1;
	return 0;
}

static void on_head(struct http_req *r)
{
	static struct api_table own;
	struct api *a = r->server->user;
	struct call *c = call_new(a, r);
	const char *why;
	int status, at_host;

	own.rows = api_routes;
	own.n = api_nroutes;
	http_set(r, "X-Request-Id", "%s", c->id);
	status = at_host = auth_host(a, r, &why);
	if (status == 0 && a_door_takes(c))
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
		call_serve(c, &own);
}

/* ---- the api ---- */

/* Its client comes back to the next front and goes on where this one ended. */
static void end_stream(struct call *c)
{
	if (c->drop)
		c->drop(c);
	c->drop = NULL;
	c->req->on_drain = NULL;
	c->endless = 0;
	http_end(c->req);
}

/* Once a second: a stream whose key was revoked meanwhile is cut. */
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
	fleet_look_at_clock(&a->fleet);
	quota_second(a);
	gauges_second(a->gauges);
	timer_set(&a->second, 1000);
}

int api_init(struct api *a, struct err *e)
{
	a->auth = auth_new();
	a->reader = json_reader_new(a->loop);
	a->gauges = gauges_new(&a->fleet);
	a->started_ns = fleet_now_ns();
	a->http.on_head = on_head;
	a->http.user = a;
	a->http.always = API_ALWAYS;
	timer_init(&a->second, a->loop, on_second);
	timer_set(&a->second, 1000);
	if (snaps_init(&a->fleet, a->conf.state, a->conf.snapshot_bytes, e) < 0)
		return -1;
	if (quota_init(a, e) < 0 || batch_doors_init(a, e) < 0)
		return -1;
	return pipelines_doors_init(a, e);
}

void api_fini(struct api *a)
{
	timer_fini(&a->second);
	languages_fini(a);
	pipelines_free(a->pipelines);
	batches_free(a->batches);
	snaps_fini(&a->fleet);
	gauges_free(a->gauges);
	quota_fini(a);
	auth_free(a->auth);
	json_reader_free(a->reader);
}
