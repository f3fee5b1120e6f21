/* call_answer.c - the answer to a request, its ETag and its row in the audit log.
 * The audit row is committed before the answer that reports the change is sent. */
#include "api/api.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "record/record.h"
#include "store/audit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CALL_JSON (JSON_COMPACT | RECORD_DIGITS)

/* The page that explains what a route does; the daemon serves it (v1/docs.c). */
static const char *call_doc(const struct call *c)
{
	static const struct {
		const char *group, *page;
	} pages[] = {
		{ "agents", "/docs/agents.md" },      { "models", "/docs/agents.md" },
		{ "tools", "/docs/agents.md" },       { "batch", "/docs/batch.md" },
		{ "cells", "/docs/languages.md" },    { "packages", "/docs/packages.md" },
		{ "pipelines", "/docs/pipeline.md" }, { "streams", "/docs/socket.md" },
		{ "secrets", "/docs/secrets.md" },    { "schedules", "/docs/operations.md" },
	};
	const char *group = c && c->row ? c->row->group : NULL;

	if (c && c->row && strstr(c->row->pattern, "/network"))
		return "/docs/egress.md";
	for (unsigned i = 0; group && i < ARRAY_LEN(pages); i++)
		if (!strcmp(pages[i].group, group))
			return pages[i].page;
	return "/docs/daemon.md";
}

json_t *call_error_json(const struct call *c, const char *code, const char *message,
			const char *why, const char *hint)
{
	json_t *hints = json_array(), *text = json_text(message);

	for (const char *end; hint && *hint; hint = *end ? end + 1 : end) {
		end = strchrnul(hint, '\n');
		json_array_append_new(hints, json_stringn(hint, (size_t)(end - hint)));
	}
	return json_pack("{s:{s:s, s:o, s:o, s:o, s:s}}", "error", "code", code, "message", text,
			 "why", json_text(why ? why : ""), "hints", hints, "doc", call_doc(c));
}

void call_account(struct call *c, const char *result)
{
	unsigned n = c->match.nparams;

	if (c->row && c->row->action && !c->audited && c->who.id[0])
		call_audit(c, c->row->action, n ? c->match.params[n - 1] : "", result);
}

void call_send_text(struct call *c, int status, const char *text, size_t n)
{
	call_account(c, status < 400 ? "ok" : "error");
	http_reply(c->req, status, "application/json", text, n);
}

/* Ends with a newline, for readers at a terminal. */
void call_send(struct call *c, int status, json_t *take_doc)
{
	size_t n = json_dumpb(take_doc, c->api->text, sizeof(c->api->text) - 1, CALL_JSON);
	char *text = n < sizeof(c->api->text) ? c->api->text : malloc(n + 1);

	if (!text || n == 0)
		abort(); /* JSON that the server builds is always valid */
	if (text != c->api->text)
		n = json_dumpb(take_doc, text, n, CALL_JSON);
	json_decref(take_doc);
	text[n] = '\n';
	call_send_text(c, status, text, n + 1);
	if (text != c->api->text)
		free(text);
}

void call_renamed(struct call *c, const char *field, const char *old, const char *name)
{
	http_set(c->req, "Warning",
		 "299 - \"%s=%s is deprecated and will be rejected by version 0.3: use %s=%s\"",
		 field, old, field, name);
}

void call_json(struct call *c, int status, json_t *take_doc)
{
	if (c->format && c->format->json)
		c->format->json(c, status, take_doc);
	else
		call_send(c, status, take_doc);
}

void call_empty(struct call *c, int status)
{
	call_account(c, "ok");
	if (c->format && c->format->json)
		c->format->json(c, status, NULL);
	else
		http_reply(c->req, status, NULL, NULL, 0);
}

void call_shared(struct call *c, const char *kind, const char *id, int status, json_t *take_doc)
{
	if (c->api->shared_row_left && !c->req->trusted_peer)
		c->api->shared_row_left(c, kind, id, status, take_doc);
	else if (take_doc)
		call_json(c, status, take_doc);
	else
		call_empty(c, status);
}

void call_merged(struct call *c, int status, json_t *take_doc, call_merge *merge)
{
	if (c->api->merged && !c->req->trusted_peer)
		c->api->merged(c, status, take_doc, merge);
	else
		call_json(c, status, take_doc);
}

json_t *call_own_node(const struct call *c)
{
	json_t *self, *name;

	if (!c->req->trusted_peer || !c->api->node_self)
		return NULL;
	self = c->api->node_self(c->api);
	name = json_incref(json_object_get(self, "name"));
	json_decref(self);
	return name;
}

void call_with_figures(struct call *c, void (*then)(struct call *c))
{
	if (c->api->figures_of_nodes && !c->req->trusted_peer)
		c->api->figures_of_nodes(c, then);
	else
		then(c);
}

void call_error(struct call *c, int status, const char *code, const char *message, const char *why,
		const char *hint)
{
	call_account(c, code);
	if (c->format && c->format->error)
		c->format->error(c, status, code, message, why, hint);
	else
		call_json(c, status, call_error_json(c, code, message, why, hint));
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
		return e->sys == E2BIG ? 413 : e->sys == ESHUTDOWN ? 503 : 429;
	case ERR_DENIED:
		return 403;
	default:
		return e->sys == ENOSPC || e->sys == EDQUOT ? 507 : e->sys == EBUSY ? 503 : 500;
	}
}

void call_fail(struct call *c, const struct err *e)
{
	int status = call_status(e);
	/* A gateway sends the request to another node then. */
	int is_full = e->kind == ERR_LIMIT && e->sys == EUSERS && c->req->trusted_peer;

	if (is_full)
		status = 503;
	if (status == 500)
		log_error("request failed", LOG_S("request", c->id), LOG_S("error", e->msg));
	call_error(c, status,
		   status == 507                                      ? "no_space"
		   : is_full                                          ? "full"
		   : e->kind == ERR_LIMIT && e->sys == ESHUTDOWN      ? "draining"
		   : isolation_is_rejection(e)                        ? "isolation_unavailable"
		   : e->kind == ERR_CONFLICT && e->sys == EINPROGRESS ? "building"
								      : err_kind_name(e->kind),
		   e->msg, NULL, isolation_lines(&c->api->fleet, e));
}

void call_list(struct call *c, json_t *take_items, const char *next)
{
	call_json(c, 200,
		  json_pack("{s:o, s:s?}", "items", take_items, "next",
			    next && *next ? next : NULL));
}

/* ---- versions ---- */

/* Of a box whose lifetime counts from its last use, "ends" moves with every request, this one
 * included. */
static char *answer_etag_text(const json_t *doc)
{
	const char *from = json_string_value(json_object_get(doc, "lifetime_from"));
	json_t *kept = json_copy((json_t *)doc);
	char *text;

	if (from && !strcmp(from, "use"))
		json_object_del(kept, "ends");
	json_object_del(kept, "cost"); /* grows without a change by a client */
	text = json_dumps(kept, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(kept);
	return text;
}

static void answer_etag(const json_t *doc, char out[40])
{
	auto_free char *text = answer_etag_text(doc);
	char hex[2 * 12 + 1];
	uint8_t hash[SHA256_BYTES];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, text, text ? strlen(text) : 0);
	sha256_end(&s, hash);
	hex_encode(hex, hash, 12);
	snprintf(out, 40, "\"%s\"", hex);
}

static int answer_etag_listed(const char *list, const char *etag)
{
	return !strcmp(list, "*") || strstr(list, etag) != NULL;
}

int call_not_modified(struct call *c, const json_t *doc)
{
	const char *has = http_header(c->req, "if-none-match");
	char etag[40];

	answer_etag(doc, etag);
	http_set(c->req, "ETag", "%s", etag);
	if (!has || !answer_etag_listed(has, etag))
		return 0;
	call_empty(c, 304);
	return 1;
}

int call_if_match(struct call *c, const json_t *current)
{
	const char *wants = http_header(c->req, "if-match");
	char etag[40];

	answer_etag(current, etag);
	if (!wants || answer_etag_listed(wants, etag))
		return 1;
	call_error(c, 412, "changed", "it has changed since you read it", etag,
		   "read it again, then repeat the request");
	return 0;
}

/* ---- the audit ---- */

/* Text from outside as the store accepts it: cut, printable ASCII only. */
static void audit_plain_text(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text ? text : "");
	for (; *out; out++)
		if ((unsigned char)*out < 0x20 || (unsigned char)*out > 0x7e)
			*out = '?';
}

void api_audit(struct api *a, const struct principal *who, const char *action, const char *subject,
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
	audit_plain_text(row.subject, sizeof(row.subject), subject);
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
