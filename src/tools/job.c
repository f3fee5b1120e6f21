/* job.c - one call of a tool: see tool.h. */
#include "api/fields.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "fleet/box_secrets.h"
#include "tools/tool.h"
#include "v1box/automatic.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the manner ---- */

static struct tool_job *under_way(const struct call *c)
{
	const struct tool_call *t = c->surface;

	return t && t->job && !t->job->over ? t->job : NULL;
}

void tool_told_error(struct call *c, int status, const char *code, const char *message,
		     const char *why, const char *hint)
{
	struct tool_job *j = under_way(c);
	struct tool_call *t = c->surface;

	if (j)
		tool_fail(j, code, message, why, hint);
	else if (t && t->refuse)
		t->refuse(c, status, code, message, why, hint);
	else
		call_send(c, status, call_error_json(c, code, message, why, hint));
}

void tool_told_json(struct call *c, int status, json_t *take_doc)
{
	struct tool_job *j = under_way(c);
	struct tool_call *t = c->surface;

	if (j && j->answered)
		j->answered(j, status, take_doc);
	else if (!j && t && t->answered)
		t->answered(c, status, take_doc);
	else
		call_send(c, status, take_doc);
}

const struct api_format tool_format = { .error = tool_told_error, .json = tool_told_json };

/* ---- life ---- */

static void job_free(struct tool_job *j)
{
	if (j->drop)
		j->drop(j);
	json_decref(j->args);
	redact_fini(&j->redact);
	head_tail_fini(&j->out[0]);
	head_tail_fini(&j->out[1]);
}

static void job_left(struct call *c)
{
	struct tool_call *t = c->surface;

	if (t->left)
		t->left(c);
	for (struct tool_job *j = t->job; j; j = j->before)
		job_free(j); /* the memory belongs to the call */
	t->job = NULL;
}

void tool_enter(struct call *c, struct tool_call *t)
{
	c->surface = t;
	c->leave = job_left;
}

struct box *tool_box(struct tool_job *j)
{
	return call_box(j->call, 0);
}

static int job_may(const struct tool_job *j)
{
	enum api_need need = j->tool->marks & TOOL_READS ? NEED_VIEWER : NEED_EDITOR;

	return (int)j->call->who.role >= (int)need - 1;
}

/* The handler of /v1 reads the arguments like a body or a query. */
static void lend_args(struct call *c, json_t *args)
{
	json_decref(c->body);
	c->body = json_incref(args);
	c->args = args;
}

static void job_run(struct call *c)
{
	struct tool_job *j = ((struct tool_call *)c->surface)->job;

	j->tool->run(j);
}

void tool_begin(struct call *c, const struct tool *t, json_t *args, const struct tool_surface *on)
{
	struct tool_job *j = call_alloc(c, sizeof(*j));
	struct tool_call *surface = c->surface;
	struct box *b;
	struct err e;

	*j = (struct tool_job){ .out = { { .half = TOOL_OUTPUT_HALF },
					 { .half = TOOL_OUTPUT_HALF } },
				.call = c,
				.tool = t,
				.on = on,
				.args = args ? json_deep_copy(args) : json_object(),
				.before = surface->job };
	surface->job = j;
	if (t->marks & TOOL_BOXES && c->who.box[0]) {
		tool_fail(j, "denied", "this key is for one box only", c->who.box, NULL);
		return;
	}
	if (!job_may(j)) {
		tool_fail(j, "denied", "this needs another role", "the key's role is viewer",
			  "editor");
		return;
	}
	if (fields_check(j->args, t->fields, "", &e) < 0) {
		tool_fail(j, "invalid", e.msg, NULL, NULL);
		return;
	}
	fields_prune(j->args, t->fields);
	lend_args(c, j->args);
	if (!(t->marks & TOOL_BOXES)) {
		b = tool_box(j);
		if (!b)
			return;
		redact_init(&j->redact, b->row.env);
		box_secrets_redact(b, &j->redact);
		if (!(t->marks & TOOL_READS) && !(t->marks & TOOL_SAVES) &&
		    automatic_before(c, b, CHECKPOINT_STEP_TOOL, job_run))
			return;
	}
	t->run(j);
}

/* ---- the end ---- */

static void job_settle(struct tool_job *j, struct tool_result *r)
{
	if (j->over)
		abort(); /* a row with two results */
	j->over = 1;
	j->on->over(j, r);
	buf_fini(&r->text);
	buf_fini(&r->image);
	json_decref(r->data);
}

static void job_result(struct tool_job *j, struct tool_result *r, const char *text, size_t n)
{
	auto_buf struct buf plain = { 0 };

	exec_before_json(&j->call->before, r->data);
	redact_json(&j->redact, r->data);
	redact_text(&j->redact, text, n, &plain);
	utf8_scrub(&r->text, buf_str(&plain), plain.len);
	job_settle(j, r);
}

void tool_result(struct tool_job *j, int failed, json_t *take_data, const char *text, size_t n)
{
	struct tool_result r = { .failed = failed, .data = take_data ? take_data : json_object() };

	job_result(j, &r, text, n);
}

void tool_image(struct tool_job *j, json_t *take_data, const char *png, size_t n, const char *fmt,
		...)
{
	struct tool_result r = { .data = take_data };
	auto_buf struct buf text = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	base64_encode(&r.image, png, n);
	job_result(j, &r, text.p, text.len);
}

void tool_done(struct tool_job *j, json_t *take_data, const char *text, size_t n)
{
	tool_result(j, 0, take_data, text, n);
}

void tool_say(struct tool_job *j, json_t *take_data, const char *fmt, ...)
{
	auto_buf struct buf text = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	tool_done(j, take_data, text.p, text.len);
}

void tool_fail(struct tool_job *j, const char *code, const char *message, const char *why,
	       const char *hint)
{
	auto_buf struct buf text = { 0 };

	buf_puts(&text, message);
	if (why && *why)
		buf_printf(&text, ": %s", why);
	/* Hints of /v1 name paths of /v1. */
	if (hint && *hint && !strstr(hint, "GET ") && !strstr(hint, "POST ") && !strchr(hint, '?'))
		buf_printf(&text, " (%s)", hint);
	tool_result(j, 1, call_error_json(j->call, code, message, why, hint), text.p, text.len);
}

/* ---- arguments ---- */

const char *tool_text(const struct tool_job *j, const char *name, const char *otherwise)
{
	const char *v = json_string_value(json_object_get(j->args, name));

	return v ? v : otherwise;
}

int64_t tool_int(const struct tool_job *j, const char *name, int64_t otherwise)
{
	const json_t *v = json_object_get(j->args, name);

	return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

int tool_flag(const struct tool_job *j, const char *name)
{
	return json_is_true(json_object_get(j->args, name));
}

json_t *tool_string(const struct tool_job *j, const char *bytes, size_t n)
{
	auto_buf struct buf plain = { 0 }, clean = { 0 };

	redact_text(&j->redact, bytes, n, &plain);
	utf8_scrub(&clean, buf_str(&plain), plain.len);
	return json_stringn(buf_str(&clean), clean.len);
}
