/* mcp.c - the HTTP transport of MCP. See mcp.h. */
#include "mcp/mcp.h"
#include "api/auth.h"
#include "api/quota.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { KEEPALIVE_MS = 15000 };

/* ---- answers ---- */

static json_t *server_info(void)
{
	return json_pack("{s:s, s:s}", "name", "atoll", "version", ATOLL_VERSION);
}

static json_t *mcp_envelope(const struct mcp_call *m, const char *what, json_t *take)
{
	return json_pack("{s:s, s:O*, s:o}", "jsonrpc", "2.0", "id", m->id, what, take);
}

int mcp_send(struct mcp_call *m, json_t *take_doc)
{
	auto_free char *text = json_dumps(take_doc, JSON_COMPACT);
	auto_buf struct buf event = { 0 };

	json_decref(take_doc);
	if (m->gone)
		return 0;
	if (!text)
		abort(); /* documents built here are always valid */
	buf_printf(&event, "event: message\ndata: %s\n\n", text);
	timer_set(&m->tick, KEEPALIVE_MS);
	return http_write(m->call->req, event.p, event.len);
}

static void mcp_finish(struct mcp_call *m, int status, json_t *take_doc)
{
	if (m->gone) {
		json_decref(take_doc);
		return;
	}
	if (!m->streaming) {
		call_send(m->call, status, take_doc);
		return;
	}
	mcp_send(m, take_doc);
	timer_clear(&m->tick);
	http_end(m->call->req);
}

static void finish_result(struct mcp_call *m, const char *type, json_t *take_result)
{
	if (m->modern) {
		json_t *meta = json_pack("{s:o}", MCP_META "serverInfo", server_info());

		json_object_set_new(take_result, "resultType", json_string(type));
		json_object_set_new(take_result, "_meta", meta);
	}
	mcp_finish(m, 200, mcp_envelope(m, "result", take_result));
}

void mcp_result(struct mcp_call *m, json_t *take_result)
{
	finish_result(m, "complete", take_result);
}

void mcp_input_required(struct mcp_call *m, json_t *take_result)
{
	finish_result(m, "input_required", take_result);
}

void mcp_cached(struct mcp_call *m, json_t *take_result, int ttl_ms)
{
	if (m->modern) {
		json_object_set_new(take_result, "ttlMs", json_integer(ttl_ms));
		json_object_set_new(take_result, "cacheScope", json_string("private"));
	}
	finish_result(m, "complete", take_result);
}

static void send_error(struct mcp_call *m, int http, int code, json_t *take_data, const char *text)
{
	auto_buf struct buf clean = { 0 };
	json_t *error;

	utf8_scrub(&clean, text, strlen(text));
	error = json_pack("{s:i, s:s#}", "code", code, "message", buf_str(&clean), (int)clean.len);
	if (take_data)
		json_object_set_new(error, "data", take_data);
	mcp_finish(m, http, mcp_envelope(m, "error", error));
}

void mcp_error(struct mcp_call *m, int http, int code, json_t *take_data, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	send_error(m, http, code, take_data, text);
}

/* Errors before the method runs: no key, unknown path, too large. */
static void mcp_refuse(struct call *c, int status, const char *code, const char *message,
		       const char *why, const char *hint)
{
	struct mcp_call *m = c->surface;
	char text[400];

	snprintf(text, sizeof(text), "%s%s%s%s%s%s", message, why && *why ? ": " : "",
		 why ? why : "", hint && *hint ? " (" : "", hint ? hint : "",
		 hint && *hint ? ")" : "");
	send_error(m, status, status >= 500 ? RPC_INTERNAL : RPC_REQUEST,
		   json_pack("{s:s}", "code", code), text);
}

int mcp_notify(struct mcp_call *m, const char *method, json_t *take_params)
{
	json_t *doc = json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params",
				take_params);

	return mcp_send(m, doc);
}

static void mcp_ticks(struct timer *t)
{
	struct mcp_call *m = loop_owner(t, struct mcp_call, tick);

	if (m->said.len) {
		mcp_tick(m);
		return;
	}
	if (mcp_waits_too_long(m)) {
		mcp_error(m, 200, RPC_REQUEST, NULL,
			  "what was asked of the client was never answered");
		return;
	}
	/* The answer arrives as a new request, which goes to the next server. */
	if (mcp_waits(m) && m->call->api->http.draining) {
		mcp_error(m, 200, RPC_INTERNAL, NULL,
			  "this server is being replaced while the client is asked: call again");
		return;
	}
	http_write(m->call->req, ":\n\n", 3);
	timer_set(&m->tick, mcp_waits(m) ? MCP_ASK_TICK_MS : KEEPALIVE_MS);
}

void mcp_stream(struct mcp_call *m)
{
	const char *accept = http_header(m->call->req, "accept");

	if (m->streaming || !accept || !strstr(accept, "text/event-stream"))
		return;
	m->streaming = 1;
	http_set(m->call->req, "Cache-Control", "no-store");
	http_set(m->call->req, "X-Accel-Buffering", "no");
	http_stream(m->call->req, 200, "text/event-stream", UINT64_MAX);
	timer_set(&m->tick, KEEPALIVE_MS);
}

/* ---- sessions ---- */

int mcp_session_begin(struct mcp_call *m, const json_t *capabilities, struct err *e)
{
	struct store_mcp_session x = { .level = -1,
				       .can = mcp_capabilities(capabilities),
				       .used_ns = fleet_now_ns() };
	uint8_t raw[MCP_SESSION_ID / 2];

	if (id_random(raw, sizeof(raw), e) < 0)
		return -1;
	if (id_own_node() < ID_NODES) { /* a gateway finds the machine of the session by it */
		raw[0] = (uint8_t)(id_own_node() >> 8);
		raw[1] = (uint8_t)id_own_node();
	}
	hex_encode(x.id, raw, sizeof(raw));
	memcpy(x.key, m->call->who.id, sizeof(x.key));
	memcpy(x.team, m->call->who.team, sizeof(x.team));
	if (store_mcp_session_insert(m->call->api->store, &x, e) < 0)
		return -1;
	memcpy(m->session_id, x.id, sizeof(m->session_id));
	return 0;
}

/* 0: it has none, and the error was sent. */
static int enter_session(struct mcp_call *m)
{
	const char *id = http_header(m->call->req, "mcp-session-id");
	struct store_mcp_session x;
	struct err e;

	if (!id) {
		mcp_error(m, 400, RPC_REQUEST, NULL, "Mcp-Session-Id is missing: initialize first");
		return 0;
	}
	/* A session of another key is not found. */
	if (store_mcp_session_get(m->call->api->store, id, m->call->who.team, m->call->who.id,
				  fleet_now_ns(), &x, &e) < 0) {
		if (e.kind == ERR_NOT_FOUND)
			mcp_error(m, 404, RPC_REQUEST, NULL,
				  "there is no such session: initialize again");
		else
			mcp_error(m, 503, RPC_INTERNAL, NULL, "the session cannot be read: %s",
				  e.msg);
		return 0;
	}
	memcpy(m->session_id, x.id, sizeof(m->session_id));
	m->level = x.level;
	m->can = x.can;
	return 1;
}

static void end_session(struct call *c)
{
	struct mcp_call *m = c->surface;
	const char *version = http_header(c->req, "mcp-protocol-version");
	struct err e;

	if (version && !strcmp(version, MCP_MODERN)) {
		http_set(c->req, "Allow", "POST");
		mcp_error(m, 405, RPC_REQUEST, NULL, "there are no sessions in this version");
		return;
	}
	if (!enter_session(m))
		return;
	if (store_mcp_session_delete(c->api->store, m->session_id, &e) < 0 &&
	    e.kind != ERR_NOT_FOUND)
		mcp_error(m, 503, RPC_INTERNAL, NULL, "the session cannot be ended: %s", e.msg);
	else
		http_reply(c->req, 200, NULL, NULL, 0);
}

/* ---- the modern era's headers ---- */

static json_t *meta_of(const struct mcp_call *m, const char *name)
{
	return json_object_get(json_object_get(m->params, "_meta"), name);
}

/* "=?base64?...?=" encodes text that a header cannot have; without both ends it is plain text. -1:
 * invalid base64. */
static int decode_value(const char *value, struct buf *out)
{
	static const char front[] = "=?base64?";
	size_t n = strlen(value);

	if (strncasecmp(value, front, sizeof(front) - 1) != 0 || n < sizeof(front) + 1 ||
	    strcmp(value + n - 2, "?=") != 0) {
		buf_add(out, value, n);
		return 0;
	}
	return base64_decode(out, value + sizeof(front) - 1, n - sizeof(front) - 1);
}

/* 1: the header equals the body; a value that the body does not have is not compared. */
int mcp_mirrors(struct mcp_call *m, const char *header, const char *body)
{
	const char *value = http_header(m->call->req, header);
	auto_buf struct buf plain = { 0 };

	if (!body)
		return 1;
	if (value && decode_value(value, &plain) == 0 && plain.len == strlen(body) &&
	    !memcmp(buf_str(&plain), body, plain.len))
		return 1;
	mcp_error(m, 400, MCP_HEADER, NULL,
		  value ? "the header %s is not what the body says" : "the header %s is missing",
		  header);
	return 0;
}

static const char *name_in(const struct mcp_call *m)
{
	static const struct {
		const char *method, *param;
	} named[] = {
		{ "tools/call", "name" },
		{ "prompts/get", "name" },
		{ "resources/read", "uri" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(named); i++)
		if (!strcmp(m->method, named[i].method))
			return json_string_value(json_object_get(m->params, named[i].param));
	return NULL;
}

/* 0: something is missing or wrong, and the error was sent. */
static int modern_head(struct mcp_call *m)
{
	const char *header = http_header(m->call->req, "mcp-protocol-version");
	const json_t *version = meta_of(m, MCP_META "protocolVersion");
	const char *name = json_string_value(version);

	if (!header) {
		mcp_error(m, 400, MCP_HEADER, NULL, "the header MCP-Protocol-Version is missing");
		return 0;
	}
	if (!name || !json_is_object(meta_of(m, MCP_META "clientCapabilities"))) {
		mcp_error(m, 400, RPC_PARAMS, NULL, "params._meta: %s is missing or no %s",
			  name ? MCP_META "clientCapabilities" : MCP_META "protocolVersion",
			  name ? "object" : "string");
		return 0;
	}
	if (strcmp(header, name) != 0) {
		mcp_error(m, 400, MCP_HEADER, NULL,
			  "the header MCP-Protocol-Version is not what the body says");
		return 0;
	}
	if (strcmp(name, MCP_MODERN) != 0) {
		mcp_error(m, 400, MCP_VERSION,
			  json_pack("{s:[s], s:O}", "supported", MCP_MODERN, "requested", version),
			  "this version is not spoken");
		return 0;
	}
	return mcp_mirrors(m, "mcp-method", m->method) && mcp_mirrors(m, "mcp-name", name_in(m));
}

/* ---- which era ---- */

static int speaks_modern(const struct mcp_call *m)
{
	const char *header = http_header(m->call->req, "mcp-protocol-version");
	const char *name;
	json_t *v;

	json_object_foreach(json_object_get(m->params, "_meta"), name,
			    v) if (!strncmp(name, MCP_META, strlen(MCP_META))) return 1;
	if (m->method && !strcmp(m->method, "initialize"))
		return 0;
	if (header)
		return mcp_old_version(header) == NULL;
	return http_header(m->call->req, "mcp-session-id") == NULL;
}

/* 0: not allowed, and the error was sent. */
static int mcp_enter(struct mcp_call *m)
{
	const json_t *level = meta_of(m, MCP_META "logLevel");

	m->modern = speaks_modern(m);
	if (m->modern) {
		m->level =
			level && json_is_string(level) ? mcp_level(json_string_value(level)) : -1;
		m->can = mcp_capabilities(meta_of(m, MCP_META "clientCapabilities"));
		return modern_head(m);
	}
	return (m->method && !strcmp(m->method, "initialize")) || enter_session(m);
}

/* ---- a message ---- */

static int good_id(const json_t *id)
{
	return json_is_string(id) || json_is_integer(id);
}

/* 0: invalid, and the error was sent. */
static int read_message(struct mcp_call *m)
{
	const char *version;

	version = json_string_value(json_object_get(m->message, "jsonrpc"));
	if (!version || strcmp(version, "2.0") != 0) {
		mcp_error(m, 400, RPC_REQUEST, NULL, "this is not a message of JSON-RPC 2.0");
		return 0;
	}
	m->id = json_object_get(m->message, "id");
	if (m->id && !good_id(m->id)) {
		m->id = NULL;
		mcp_error(m, 400, RPC_REQUEST, NULL, "id: must be a string or an integer");
		return 0;
	}
	m->method = json_string_value(json_object_get(m->message, "method"));
	m->params = json_object_get(m->message, "params");
	if (m->params && !json_is_object(m->params)) {
		m->params = NULL;
		mcp_error(m, 400, RPC_REQUEST, NULL, "params: must be an object");
		return 0;
	}
	return 1;
}

static void mcp_cancel(struct mcp_call *x)
{
	if (x->base.job)
		x->base.job->kill_on_close = 1;
	x->gone = 1;
	timer_clear(&x->tick);
	if (x->streaming)
		http_end(x->call->req);
	else
		http_abort(x->call->req);
}

/* In the session protocol a call is cancelled by a separate message. */
static void mcp_cancelled(struct mcp_call *m)
{
	const json_t *which = json_object_get(m->params, "requestId");

	for (struct mcp_call *x = m->mcp->calls; x; x = x->next)
		if (x != m && x->id && !x->gone && !x->call->req->status == !x->streaming &&
		    !strcmp(x->session_id, m->session_id) && m->session_id[0] &&
		    json_equal(x->id, which)) {
			mcp_cancel(x);
			return;
		}
}

/* A notification, or the answer to a question of the server. */
static void mcp_hear(struct mcp_call *m)
{
	if (!m->method)
		mcp_answered(m);
	else if (!strcmp(m->method, "notifications/cancelled"))
		mcp_cancelled(m);
	http_reply(m->call->req, 202, NULL, NULL, 0);
}

static void left_early(struct http_req *r)
{
	struct call *c = r->user;
	struct mcp_call *m = c->surface;

	m->gone = 1;
	timer_clear(&m->tick);
	http_abort(r);
}

static void message_read(struct call *c, json_t *take_doc, const struct err *why)
{
	struct mcp_call *m = c->surface;

	m->message = take_doc;
	if (!m->message) {
		mcp_error(m, call_status(why), RPC_PARSE, NULL, "%s", why->msg);
		return;
	}
	if (!read_message(m) || !mcp_enter(m))
		return;
	if (!m->method && (m->modern || (!json_object_get(m->message, "result") &&
					 !json_object_get(m->message, "error")))) {
		mcp_error(m, 400, RPC_REQUEST, NULL, "method: is missing");
		return;
	}
	if (!m->method || !m->id) {
		mcp_hear(m);
		return;
	}
	if (m->modern && json_object_get(m->params, "inputResponses") &&
	    !json_is_object(json_object_get(m->params, "inputResponses"))) {
		mcp_error(m, 200, RPC_PARAMS, NULL, "inputResponses: must be an object");
		return;
	}
	m->token = meta_of(m, "progressToken");
	if (m->token && !good_id(m->token))
		m->token = NULL;
	if (m->modern) /* a disconnect cancels the call */
		c->req->on_eof = left_early;
	mcp_method(m);
}

static void body_ended(struct http_req *r)
{
	struct call *c = r->user;
	struct mcp_call *m = c->surface;

	if (r->body.len && r->body.p[strspn(buf_str(&r->body), " \t\r\n")] == '[')
		mcp_error(m, 400, RPC_REQUEST, NULL, "batches are not taken: send one message");
	else if (r->body.len == 0)
		mcp_error(m, 400, RPC_PARSE, NULL, "this is not JSON: the body is empty");
	else
		call_read_json(c, &r->body, message_read);
}

static void mcp_post(struct call *c)
{
	http_want_body(c->req, HTTP_BODY_WHOLE, c->api->conf.json_max);
	c->req->on_body_end = body_ended;
}

/* ---- the surface ---- */

/* As call_authorize(), but a key for one box is accepted and uses that box. */
static int mcp_admit(struct call *c)
{
	const char *why;
	int status = auth_principal(c->api, c->req, &c->who, &why);

	if (status) {
		call_refuse_key(c, status, why);
		return 0;
	}
	return quota_request(c);
}

static const struct api_format format = { .error = tool_told_error,
					  .admit = mcp_admit,
					  .json = tool_told_json };
static const struct api_route rows[] = {
	{ "POST", "/mcp", NEED_VIEWER, mcp_post, "send an MCP message", .group = "tools" },
	{ "DELETE", "/mcp", NEED_VIEWER, end_session, "end an MCP session", .group = "tools" },
};
static struct api_table table = { rows, ARRAY_LEN(rows), &format, NULL };

static void mcp_left(struct call *c)
{
	struct mcp_call *m = c->surface;

	timer_fini(&m->tick);
	buf_fini(&m->said);
	json_decref(m->message);
	json_decref(m->args);
	json_decref(m->answers);
	json_decref(m->waiting);
	json_decref(m->state);
	*m->at = m->next;
	if (m->next)
		m->next->at = m->at;
}

static struct mcp *mcp_of(struct api *a)
{
	struct mcp *x = a->mcp;
	struct err e;

	if (x)
		return x;
	x = calloc(1, sizeof(*x));
	if (!x || id_random(x->key, sizeof(x->key), &e) < 0 ||
	    id_random((uint8_t *)&x->nonce, sizeof(x->nonce), &e) < 0)
		abort();
	return a->mcp = x;
}

void mcp_fini(struct api *a)
{
	free(a->mcp);
	a->mcp = NULL;
}

static int mcp_take(struct call *c)
{
	struct mcp_call *m;
	const char *why;
	int status;

	if (strcmp(c->req->path, "/mcp") != 0)
		return 0;
	m = call_alloc(c, sizeof(*m));
	*m = (struct mcp_call){ .call = c,
				.mcp = mcp_of(c->api),
				.level = -1,
				.base = { .refuse = mcp_refuse, .left = mcp_left } };
	m->next = m->mcp->calls;
	m->at = &m->mcp->calls;
	if (m->next)
		m->next->at = &m->next;
	m->mcp->calls = m;
	timer_init(&m->tick, c->api->loop, mcp_ticks);
	tool_enter(c, &m->base);
	c->format = &format;
	status = auth_origin(c->api, c->req, &why);
	if (status)
		call_error(c, status, "denied", "not at this address", why, NULL);
	else
		call_serve(c, &table);
	return 1;
}

const struct api_surface mcp_surface = { mcp_take, rows, ARRAY_LEN(rows), NULL };
