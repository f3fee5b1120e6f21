/* mcp_tools.c - tools/call: the box it is about, its progress, its result. */
#include "v1box/boxes.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "mcp/mcp.h"

#include <stdio.h>
#include <string.h>

enum { PROGRESS_MS = 100, PROGRESS_TEXT = 4096, INFO = 1 };

/* ---- progress ---- */

/* The end of the output, as complete characters. */
static int tell_progress(struct mcp_call *m)
{
	auto_buf struct buf clean = { 0 };
	size_t from = m->said.len > PROGRESS_TEXT ? m->said.len - PROGRESS_TEXT : 0;

	if (from)
		from = utf8_begin(m->said.p, m->said.len, from);
	utf8_scrub(&clean, m->said.p + from, m->said.len - from);
	buf_cut(&m->said, 0);
	m->told_ms = loop_now_ms();
	return mcp_notify(m, "notifications/progress",
			  json_pack("{s:O, s:I, s:s#}", "progressToken", m->token, "progress",
				    (json_int_t)++m->progress, "message", buf_str(&clean),
				    (int)clean.len));
}

void mcp_tick(struct mcp_call *m)
{
	tell_progress(m);
}

static int mcp_said(struct tool_job *j, unsigned stream, const char *bytes, size_t n)
{
	struct mcp_call *m = j->call->surface;
	size_t skip = n > 2 * PROGRESS_TEXT ? n - 2 * PROGRESS_TEXT : 0;

	(void)stream;
	if (!m->streaming || !m->token)
		return 0;
	if (m->said.len > 2 * PROGRESS_TEXT)
		buf_cut(&m->said, 0);
	buf_add(&m->said, bytes + skip, n - skip);
	if (loop_now_ms() - m->told_ms >= PROGRESS_MS)
		return tell_progress(m);
	timer_set(&m->tick, PROGRESS_MS);
	return 0;
}

static void tell_log(struct mcp_call *m, const char *what)
{
	char text[200];

	if (!m->streaming || m->level < 0 || m->level > INFO)
		return;
	snprintf(text, sizeof(text), "%s %s", m->tool->name, what);
	mcp_notify(m, "notifications/message",
		   json_pack("{s:s, s:s, s:s}", "level", "info", "logger", "atoll", "data", text));
}

/* ---- the result ---- */

static json_t *mcp_content(const struct tool_result *r)
{
	json_t *content = json_pack("[{s:s, s:s#}]", "type", "text", "text", buf_str(&r->text),
				    (int)r->text.len);

	if (r->image.len)
		json_array_append_new(content, json_pack("{s:s, s:s#, s:s}", "type", "image",
							 "data", r->image.p, (int)r->image.len,
							 "mimeType", "image/png"));
	return content;
}

static void mcp_over(struct tool_job *j, const struct tool_result *r)
{
	struct mcp_call *m = j->call->surface;

	if (m->said.len && m->streaming)
		tell_progress(m);
	tell_log(m, r->failed ? "failed" : "is done");
	mcp_result(m, json_pack("{s:o, s:O, s:b}", "content", mcp_content(r), "structuredContent",
				r->data, "isError", r->failed));
}

static const struct tool_surface on = { mcp_said, mcp_over };

/* ---- its box ---- */

void mcp_own_session(const struct call *c, char out[STORE_SESSION + 1])
{
	snprintf(out, STORE_SESSION + 1, "mcp:%.100s", c->who.id);
}

static void no_box(struct call *c, int status, const char *code, const char *message,
		   const char *why, const char *hint);

static void mcp_begin(struct mcp_call *m)
{
	tool_begin(m->call, m->tool, m->args, m->surface);
	if (m->modern && m->base.job)
		m->base.job->kill_on_close = 1;
}

static void has_own_box(struct call *c, int status, json_t *take_doc)
{
	struct mcp_call *m = c->surface;
	const char *id = json_string_value(json_object_get(take_doc, "id"));

	(void)status;
	snprintf(c->match.params[0], sizeof(c->match.params[0]), "%s", id ? id : "");
	c->match.nparams = 1;
	json_decref(take_doc);
	mcp_begin(m);
}

/* Also when this server has adopted a box of another server. */
static void find_box(struct call *c)
{
	struct mcp_call *m = c->surface;
	char session[STORE_SESSION + 1];

	if (c->match.nparams) {
		if (!call_needs_adopt(c))
			mcp_begin(m);
		return;
	}
	if ((int)c->who.role < (int)NEED_EDITOR - 1) {
		no_box(c, 403, "denied", "this key may not make a box of its own",
		       "its role is viewer; name a box", NULL);
		return;
	}
	mcp_own_session(c, session);
	json_decref(c->body);
	c->body = json_pack("{s:s}", "session", session);
	m->base.answered = has_own_box;
	boxes_create(c);
}

/* As for a route: the parameter, and the function that is called when the box is adopted. */
static const struct api_route in_box = { "POST", "/mcp/{box}",     NEED_VIEWER,       find_box,
					 "",     .group = "tools", .scope = SCOPE_BOX };

/* A failure to create the box is reported like any failure of a tool. */
static void no_box(struct call *c, int status, const char *code, const char *message,
		   const char *why, const char *hint)
{
	struct mcp_call *m = c->surface;
	auto_buf struct buf said_so = { 0 }, clean = { 0 };

	(void)status;
	(void)hint;
	buf_printf(&said_so, "%s%s%s", message, why && *why ? ": " : "", why ? why : "");
	utf8_scrub(&clean, said_so.p, said_so.len);
	mcp_result(m, json_pack("{s:[{s:s, s:s#}], s:o, s:b}", "content", "type", "text", "text",
				buf_str(&clean), (int)clean.len, "structuredContent",
				call_error_json(c, code, message, why, NULL), "isError", 1));
}

void mcp_run(struct mcp_call *m, const struct tool *t, json_t *take_args, const char *box,
	     const struct tool_surface *surface)
{
	struct call *c = m->call;

	m->tool = t;
	m->args = take_args;
	m->surface = surface;
	m->base.refuse = no_box;
	if (!box && c->who.box[0])
		box = c->who.box;
	c->match.nparams = box != NULL;
	snprintf(c->match.params[0], sizeof(c->match.params[0]), "%s", box ? box : "");
	c->row = &in_box;
	if (t->marks & TOOL_BOXES)
		mcp_begin(m);
	else
		find_box(c);
}

void mcp_tools_call(struct mcp_call *m)
{
	const char *name = json_string_value(json_object_get(m->params, "name"));
	json_t *args = json_object_get(m->params, "arguments"), *box = json_object_get(args, "box");
	const struct tool *t = name ? tool_named(name) : NULL;
	const char *which = NULL;

	if (!t || t->alias) {
		mcp_error(m, 200, RPC_PARAMS, NULL, "Unknown tool: %.80s",
			  name ? name : "(no name)");
		return;
	}
	if (args && !json_is_object(args)) {
		mcp_error(m, 200, RPC_PARAMS, NULL, "arguments: must be an object");
		return;
	}
	if (!mcp_may(m, t))
		return;
	args = args ? json_deep_copy(args) : json_object();
	if (!(t->marks & TOOL_BOXES)) {
		if (json_is_string(box) && json_string_length(box) &&
		    json_string_length(box) < ROUTE_TEXT)
			which = json_string_value(box);
		if (which || json_is_null(box))
			json_object_del(args,
					"box"); /* remaining members are not fields of the tool */
	}
	if (m->token || (m->level >= 0 && m->level <= INFO))
		mcp_stream(m);
	m->tool = t;
	tell_log(m, "begins");
	mcp_run(m, t, args, which, &on);
}
