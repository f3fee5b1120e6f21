/* swerex_call.c - see swerex_call.h. */
#include "swerex/swerex_call.h"
#include "v1box/boxes.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/head_tail.h"
#include "mcp/mcp.h"
#include "swerex/swerex_idempotency.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { RAISED = 511, REQUEST_ID = 128 };

/* ---- answers ---- */

void swerex_answer(struct call *c, int status, json_t *take_doc)
{
	struct swerex *x = c->surface;

	if (x)
		swerex_idempotency_answer(c->api, steal(&x->again), status, take_doc);
	call_send(c, status, take_doc);
}

void swerex_exception(struct call *c, const char *class, const struct buf *message,
		      json_t *take_extra)
{
	auto_buf struct buf clean = { 0 };

	utf8_scrub(&clean, buf_str(message), message->len);
	swerex_answer(c, RAISED,
		      json_pack("{s:{s:s#, s:s, s:s, s:o}}", "swerexception", "message",
				buf_str(&clean), (int)clean.len, "class_path", class, "traceback",
				"", "extra_info", take_extra ? take_extra : json_object()));
}

void swerex_raise(struct call *c, const char *class, const char *fmt, ...)
{
	auto_buf struct buf text = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	swerex_exception(c, class, &text, NULL);
}

static void swerex_call_refuse(struct call *c, int status, const char *code, const char *message,
			       const char *why, const char *hint)
{
	auto_buf struct buf text = { 0 }, clean = { 0 };
	struct swerex *x = c->surface;

	(void)code;
	(void)hint;
	buf_printf(&text, "%s%s%s", message, why && *why ? ": " : "", why ? why : "");
	utf8_scrub(&clean, text.p, text.len);
	if (x)
		swerex_idempotency_forget(steal(&x->again));
	call_send(c, status == 400 ? 422 : status,
		  json_pack("{s:s#}", "detail", buf_str(&clean), (int)clean.len));
}

static void told_error(struct call *c, int status, const char *code, const char *message,
		       const char *why, const char *hint)
{
	(c->surface ? tool_told_error : swerex_call_refuse)(c, status, code, message, why, hint);
}

const struct api_format swerex_format = { .error = told_error, .json = tool_told_json };

void swerex_invalid(struct call *c, const char *what)
{
	swerex_call_refuse(c, 400, "invalid", what, NULL, NULL);
}

/* ---- its box ---- */

static void swerex_call_left(struct call *c)
{
	struct swerex *x = c->surface;

	json_decref(x->asked);
	swerex_idempotency_leave(steal(&x->again));
	if (x->form) {
		buf_fini(&x->form->file);
		buf_fini(&x->form->path);
		buf_fini(&x->form->unzip);
	}
}

static void has_own_box(struct call *c, int status, json_t *take_doc)
{
	struct swerex *x = c->surface;
	const char *id = json_string_value(json_object_get(take_doc, "id"));

	(void)status;
	snprintf(c->match.params[0], sizeof(c->match.params[0]), "%s", id ? id : "");
	json_decref(take_doc);
	x->base.answered = NULL;
	tool_begin(c, x->tool, x->asked, x->on);
}

/* The default box of the key: the same as for MCP. */
static void make_own_box(struct call *c, struct swerex *x)
{
	char session[STORE_SESSION + 1];

	if ((int)c->who.role < (int)NEED_EDITOR - 1) {
		swerex_call_refuse(c, 403, "denied", "this key may not make a box of its own",
				   "its role is viewer; name a box", NULL);
		return;
	}
	mcp_own_session(c, session);
	x->asked = c->body;
	c->body = json_pack("{s:s}", "session", session);
	x->base.answered = has_own_box;
	boxes_create(c);
}

static int is_own(const struct call *c)
{
	return !strcmp(call_param(c, 0), "_");
}

/* A key for one box uses that box. */
static void name_bound_box(struct call *c)
{
	if (is_own(c) && c->who.box[0])
		snprintf(c->match.params[0], sizeof(c->match.params[0]), "%s", c->who.box);
}

struct swerex *swerex_new(struct call *c, const struct tool *t, const struct tool_surface *on)
{
	struct swerex *x = call_alloc(c, sizeof(*x));

	*x = (struct swerex){ .base = { .refuse = swerex_call_refuse, .left = swerex_call_left },
			      .tool = t,
			      .on = on };
	tool_enter(c, &x->base);
	return x;
}

/* 0: a repeated request, which was answered. */
static int is_first(struct call *c, struct swerex *x)
{
	const char *id = http_header(c->req, "x-request-id"), *text;
	int status;
	size_t n;

	if (!id || x->again)
		return 1;
	if (!*id || strlen(id) > REQUEST_ID) {
		swerex_invalid(c, "X-Request-ID must have 1 to 128 bytes");
		return 0;
	}
	switch (swerex_idempotency_begin(c, id, &x->again, &status, &text, &n)) {
	case AGAIN_ANSWERED:
		http_set(c->req, "Idempotent-Replayed", "true");
		http_reply(c->req, status, "application/json", text, n);
		return 0;
	case AGAIN_BUSY:
		swerex_call_refuse(c, 409, "conflict",
				   "the first request with this id is still being served", NULL,
				   NULL);
		return 0;
	case AGAIN_LOST:
		swerex_call_refuse(
			c, 409, "conflict",
			"the first request with this id was started, and its answer is lost", NULL,
			NULL);
		return 0;
	default:
		return 1;
	}
}

/* Also when this server has adopted a box of another server. */
void swerex_begin(struct call *c, const struct tool *t, const struct tool_surface *on)
{
	struct swerex *x = c->surface ? c->surface : swerex_new(c, t, on);

	if (!is_first(c, x))
		return;
	name_bound_box(c);
	if (is_own(c))
		make_own_box(c, x);
	else if (call_box(c, 0))
		tool_begin(c, t, x->asked ? x->asked : c->body, on);
}

void swerex_is_alive(struct call *c)
{
	name_bound_box(c);
	if (is_own(c) || call_box_peek(c, 0)) /* the default box is created on demand */
		swerex_answer(c, 200, json_pack("{s:b, s:s}", "is_alive", 1, "message", ""));
}
