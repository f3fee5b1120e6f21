/* connect.c - see connect.h. */
#include "e2b/connect.h"
#include "api/fields.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "record/changes.h"
#include "e2b/envelope.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEEPALIVE_S = 90, KEEPALIVE_MAX_S = 3600, ASK_MAX = 8 << 20 };

static const struct {
	const char *name;
	int status;
} codes[CONNECT_CODES] = {
	[CONNECT_CANCELED] = { "canceled", 499 },
	[CONNECT_UNKNOWN] = { "unknown", 500 },
	[CONNECT_INVALID] = { "invalid_argument", 400 },
	[CONNECT_DEADLINE] = { "deadline_exceeded", 504 },
	[CONNECT_NOT_FOUND] = { "not_found", 404 },
	[CONNECT_EXISTS] = { "already_exists", 409 },
	[CONNECT_DENIED] = { "permission_denied", 403 },
	[CONNECT_EXHAUSTED] = { "resource_exhausted", 429 },
	[CONNECT_PRECONDITION] = { "failed_precondition", 400 },
	[CONNECT_ABORTED] = { "aborted", 409 },
	[CONNECT_RANGE] = { "out_of_range", 400 },
	[CONNECT_UNIMPLEMENTED] = { "unimplemented", 501 },
	[CONNECT_INTERNAL] = { "internal", 500 },
	[CONNECT_UNAVAILABLE] = { "unavailable", 503 },
	[CONNECT_LOSS] = { "data_loss", 500 },
	[CONNECT_WHO] = { "unauthenticated", 401 },
};

/* ---- answers ---- */

/* In one piece: each write is a separate chunk. */
static int connect_put(struct http_req *r, uint8_t flags, const char *text, size_t n)
{
	auto_buf struct buf all = { 0 };
	uint8_t head[ENVELOPE];

	envelope_head(head, flags, n);
	buf_space(&all, sizeof(head) + n);
	buf_add(&all, head, sizeof(head));
	buf_add(&all, text, n);
	return http_write(r, all.p, all.len);
}

static void connect_answer(struct call *c, int status, json_t *take_doc)
{
	auto_free char *text = json_dumps(take_doc, JSON_COMPACT);

	json_decref(take_doc);
	if (!text)
		abort(); /* JSON that the server builds is always valid */
	http_reply(c->req, status, "application/json", text, strlen(text));
}

void connect_reply(struct call *c, json_t *take_doc)
{
	connect_answer(c, 200, take_doc);
}

__attribute__((format(printf, 2, 0))) static json_t *error_json(enum connect_code code,
								const char *fmt, va_list ap)
{
	char text[600];

	vsnprintf(text, sizeof(text), fmt, ap);
	return json_pack("{s:s, s:o}", "code", codes[code].name, "message", json_text(text));
}

static int is_stream(const struct call *c)
{
	const char *type = http_header(c->req, "content-type");

	return type && !strncasecmp(type, "application/connect+json", 24);
}

static void end_with(struct http_req *r, json_t *take_error)
{
	json_t *doc = take_error ? json_pack("{s:o}", "error", take_error) : json_object();
	auto_free char *text = json_dumps(doc, JSON_COMPACT);

	json_decref(doc);
	if (!text)
		abort();
	connect_put(r, ENVELOPE_END, text, strlen(text));
	http_end(r);
}

/* The HTTP status of a rejected stream is 200, so the status for the audit log is set here. */
static void fail_with(struct call *c, enum connect_code code, json_t *take_error)
{
	if (c->row && c->row->action && !c->audited)
		call_audit(c, c->row->action, c->held, codes[code].name);
	if (is_stream(c)) {
		http_stream(c->req, 200, "application/connect+json", UINT64_MAX);
		end_with(c->req, take_error);
	} else {
		connect_answer(c, codes[code].status, take_error);
	}
}

void connect_fail(struct call *c, enum connect_code code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail_with(c, code, error_json(code, fmt, ap));
	va_end(ap);
}

void connect_fail_err(struct call *c, const struct err *e)
{
	enum connect_code code = CONNECT_INTERNAL;

	switch (e->kind) {
	case ERR_INVALID:
		code = CONNECT_INVALID;
		break;
	case ERR_NOT_FOUND:
		code = CONNECT_NOT_FOUND;
		break;
	case ERR_CONFLICT:
		code = CONNECT_EXISTS;
		break;
	case ERR_LIMIT:
		code = CONNECT_EXHAUSTED;
		break;
	case ERR_DENIED:
		code = CONNECT_DENIED;
		break;
	default:
		break;
	}
	connect_fail(c, code, "%s", e->msg);
}

/* ---- the question ---- */

struct ask {
	int stream;
	void (*run)(struct call *c, json_t *ask);
};

/* The first envelope contains the whole request; further bytes are ignored. */
static int open_envelope(struct envelope *v, const struct buf *body, const char **why)
{
	const char *at = buf_str(body);
	size_t n = body->len;
	int rc = envelope_take(v, &at, &n, ASK_MAX, why);

	if (rc == 0)
		*why = envelope_is_open(v) && v->have == ENVELOPE
			       ? "the envelope is longer than the body"
			       : "the body is shorter than an envelope";
	return rc > 0 ? 0 : -1;
}

static void ask_read(struct call *c, json_t *take_doc, const struct err *why)
{
	struct ask *a = c->state;

	c->state = NULL;
	c->body = take_doc;
	if (c->body)
		a->run(c, c->body);
	else
		connect_fail(c, CONNECT_INVALID, "%s", why->msg);
}

static void connect_asked(struct http_req *r)
{
	struct call *c = r->user;
	struct ask *a = c->state;
	struct envelope v = { 0 };
	const char *why = NULL;

	if (a->stream && open_envelope(&v, &r->body, &why) < 0) {
		envelope_fini(&v);
		connect_fail(c, CONNECT_INVALID, "%s", why);
		return;
	}
	call_read_json(c, a->stream ? &v.body : &r->body, ask_read);
	envelope_fini(&v);
}

int connect_speaks(struct call *c, int stream)
{
	const char *type = http_header(c->req, "content-type");

	if (is_stream(c) == stream && !(type && strstr(type, "proto")))
		return 1;
	http_set(c->req, "Accept-Post", "%s",
		 stream ? "application/connect+json" : "application/json");
	http_reply(c->req, 415, NULL, NULL, 0);
	return 0;
}

void connect_ask(struct call *c, int stream, void (*run)(struct call *c, json_t *ask))
{
	struct ask *a = call_alloc(c, sizeof(*a));

	if (!connect_speaks(c, stream))
		return;
	*a = (struct ask){ stream, run };
	c->state = a;
	http_want_body(c->req, HTTP_BODY_WHOLE, ASK_MAX);
	c->req->on_body_end = connect_asked;
}

uint64_t connect_timeout_ms(const struct call *c)
{
	const char *text = http_header(c->req, "connect-timeout-ms");

	return text && strspn(text, "0123456789") == strlen(text) && strlen(text) <= 10
		       ? strtoull(text, NULL, 10)
		       : 0;
}

/* ---- a stream ---- */

static void say_alive(struct timer *t)
{
	struct connect_stream *s = loop_owner(t, struct connect_stream, idle);

	connect_send_text(s, s->keepalive, strlen(s->keepalive));
}

void connect_open(struct connect_stream *s, struct call *c, const char *keepalive_json)
{
	const char *text = http_header(c->req, "keepalive-ping-interval");
	unsigned long seconds = text ? strtoul(text, NULL, 10) : 0;

	*s = (struct connect_stream){ .call = c, .keepalive = keepalive_json };
	s->idle_ms = (seconds && seconds <= KEEPALIVE_MAX_S ? seconds : KEEPALIVE_S) * 1000;
	timer_init(&s->idle, c->api->loop, say_alive);
	timer_set(&s->idle, s->idle_ms);
	http_stream(c->req, 200, "application/connect+json", UINT64_MAX);
}

int connect_send_text(struct connect_stream *s, const char *json, size_t n)
{
	timer_set(&s->idle, s->idle_ms);
	return connect_put(s->call->req, 0, json, n);
}

int connect_send_bytes(struct connect_stream *s, const char *before, const void *bytes, size_t n,
		       const char *behind)
{
	size_t coded = (n + 2) / 3 * 4, len = strlen(before) + coded + strlen(behind);
	auto_buf struct buf all = { 0 };
	uint8_t head[ENVELOPE];

	envelope_head(head, 0, len);
	buf_space(&all, sizeof(head) + len);
	buf_add(&all, head, sizeof(head));
	buf_puts(&all, before);
	base64_encode(&all, bytes, n);
	buf_puts(&all, behind);
	timer_set(&s->idle, s->idle_ms);
	return http_write(s->call->req, all.p, all.len);
}

int connect_send(struct connect_stream *s, json_t *take_doc)
{
	auto_free char *text = json_dumps(take_doc, JSON_COMPACT);

	json_decref(take_doc);
	if (!text)
		abort();
	return connect_send_text(s, text, strlen(text));
}

void connect_stream_reply(struct call *c, const char *json)
{
	http_stream(c->req, 200, "application/connect+json", UINT64_MAX);
	connect_put(c->req, 0, json, strlen(json));
	end_with(c->req, NULL);
}

int connect_bytes(const json_t *text, struct buf *out)
{
	const char *p = json_string_value(text);
	size_t n = json_string_length(text), tail;
	char last[4] = "====";

	if (!p)
		return -1;
	while (n && p[n - 1] == '=')
		n--;
	tail = n % 4;
	memcpy(last, p + n - tail, tail);
	if (tail == 1 || base64_decode(out, p, n - tail) < 0)
		return -1;
	return tail ? base64_decode(out, last, sizeof(last)) : 0;
}

void connect_drop(struct connect_stream *s)
{
	if (s->call)
		timer_fini(&s->idle);
	s->call = NULL;
}

void connect_end(struct connect_stream *s)
{
	struct http_req *r = s->call->req;

	connect_drop(s);
	end_with(r, NULL);
}

void connect_end_error(struct connect_stream *s, enum connect_code code, const char *fmt, ...)
{
	struct http_req *r = s->call->req;
	va_list ap;

	connect_drop(s);
	va_start(ap, fmt);
	end_with(r, error_json(code, fmt, ap));
	va_end(ap);
}

void connect_cut(struct connect_stream *s)
{
	struct http_req *r = s->call->req;

	connect_drop(s);
	http_abort(r);
}

/* ---- who ---- */

int connect_user(struct call *c, int *out_root)
{
	const char *text = http_header(c->req, "authorization");
	const struct box *b = fleet_find(&c->api->fleet, c->held);
	auto_buf struct buf name = { 0 };
	size_t n = 0;

	*out_root = 0;
	if (!text || strncasecmp(text, "Basic ", 6) != 0)
		return 0;
	if (base64_decode(&name, text + 6, strlen(text + 6)) == 0)
		while (n < name.len && name.p[n] != ':' && name.p[n])
			n++;
	if (n == 4 && !memcmp(name.p, "root", n))
		*out_root = 1;
	else if (n && !e2b_is_user(b, name.p, n)) {
		connect_fail(c, CONNECT_WHO, "invalid username: '%.*s'", (int)(n < 64 ? n : 64),
			     name.p);
		return -1;
	}
	return 0;
}
