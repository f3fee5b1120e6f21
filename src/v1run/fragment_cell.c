/* fragment_cell.c - see fragment_cell.h. */
#include "v1run/fragment_cell.h"
#include "api/plan_limits.h"
#include "v1run/cells.h"
#include "record/changes.h"
#include "fleet/box.h"
#include "fleet/isolation.h"
#include "notebook/context.h"

#include <string.h>

struct fragment_cell {
	struct cell_reader reader;
	struct call *call;
	char context[ID_MAX + 1];
};

/* Front ends expect results in the format of E2B's SDK. */
static const struct {
	const char *mime, *name;
} fragment_cell_forms[] = {
	{ "text/plain", "text" },        { "text/html", "html" },
	{ "text/markdown", "markdown" }, { "image/svg+xml", "svg" },
	{ "image/png", "png" },          { "image/jpeg", "jpeg" },
	{ "application/pdf", "pdf" },    { "text/latex", "latex" },
	{ "application/json", "json" },  { "application/javascript", "javascript" },
};

static json_t *fragment_cell_result(const json_t *event)
{
	json_t *data = json_object_get(event, "data"), *extra = json_object_get(event, "extra"),
	       *doc, *v;

	doc = json_pack("{s:b, s:O}", "isMainResult", json_is_true(json_object_get(event, "main")),
			"raw", data);
	for (unsigned i = 0; i < sizeof(fragment_cell_forms) / sizeof(fragment_cell_forms[0]);
	     i++) {
		v = json_object_get(data, fragment_cell_forms[i].mime);
		if (v)
			json_object_set(doc, fragment_cell_forms[i].name, v);
	}
	if ((v = json_object_get(extra, "chart")))
		json_object_set(doc, "chart", v);
	if ((v = json_object_get(extra, "data")))
		json_object_set(doc, "data", v);
	return doc;
}

static json_t *fragment_cell_pieces(const struct buf *b)
{
	json_t *all = json_array(), *text = NULL;

	if (b->len)
		text = json_stringn(b->p, b->len);
	if (!text && b->len)
		text = json_text(buf_str(b)); /* not UTF-8 */
	if (text)
		json_array_append_new(all, text);
	return all;
}

/* Why the cell ended without an error of the interpreter: a timeout, or the interpreter
 * has exited. */
static json_t *fragment_cell_error(const json_t *end, const char *status)
{
	const char *cause = json_string_value(json_object_get(end, "cause")),
		   *message = json_string_value(json_object_get(end, "message"));

	return json_pack("{s:s, s:s, s:s}", "name", cause ? cause : status, "value",
			 message ? message
			 : cause && !strcmp(cause, "timeout")
				 ? "the cell took longer than it may: raise timeout_ms"
				 : status,
			 "traceback", "");
}

static void fragment_cell_set_events(json_t *doc, const struct cell *x)
{
	json_t *results = json_object_get(doc, "cellResults");

	for (unsigned i = 0; i < x->nevents; i++) {
		json_t *ev = json_loads(x->events[i].text, JSON_ALLOW_NUL, NULL);
		const char *type = json_string_value(json_object_get(ev, "type"));

		if (type && !strcmp(type, "result") && json_is_object(json_object_get(ev, "data")))
			json_array_append_new(results, fragment_cell_result(ev));
		else if (type && !strcmp(type, "error"))
			json_object_set_new(doc, "runtimeError",
					    json_pack("{s:O*, s:O*, s:O*}", "name",
						      json_object_get(ev, "name"), "value",
						      json_object_get(ev, "value"), "traceback",
						      json_object_get(ev, "text")));
		json_decref(ev);
	}
}

static void fragment_cell_answer(struct fragment_cell *s, const struct cell *x)
{
	struct call *c = s->call;
	const char *status = json_string_value(json_object_get(x->end, "status")),
		   *cause = json_string_value(json_object_get(x->end, "cause"));
	int late = cause && !strcmp(cause, "timeout"), ok = status && !strcmp(status, "ok");
	json_t *doc = json_pack("{s:s, s:O*, s:[], s:o, s:o, s:i, s:s, s:b, s:s, s:I}", "sbxId",
				c->held, "template",
				json_object_get(json_object_get(c->body, "metadata"), "template"),
				"cellResults", "stdout", fragment_cell_pieces(&x->out[0]), "stderr",
				fragment_cell_pieces(&x->out[1]), "exitCode",
				ok     ? 0
				: late ? 124
				       : 1,
				"cause",
				late ? "wall"
				: ok || !strcmp(status ? status : "", "error") ? "exit"
				: cause ? cause
					: "exit",
				"truncated", x->truncated, "context", s->context, "cell",
				(json_int_t)x->number);

	fragment_cell_set_events(doc, x);
	if (late) {
		json_t *error = fragment_cell_error(x->end, status);

		json_object_set(error, "traceback",
				json_object_get(json_object_get(doc, "runtimeError"), "traceback"));
		json_object_set_new(doc, "runtimeError", error);
	}
	if (!ok && !json_object_get(doc, "runtimeError"))
		json_object_set_new(doc, "runtimeError",
				    fragment_cell_error(x->end, status ? status : "error"));
	cell_unread(&s->reader);
	c->drop = NULL;
	call_json(c, 200, doc);
}

static void fragment_cell_update(struct cell_reader *r)
{
	struct fragment_cell *s = loop_owner(r, struct fragment_cell, reader);

	if (r->cell->state == CELL_OVER)
		fragment_cell_answer(s, r->cell);
}

static void fragment_cell_dropped(struct call *c)
{
	struct fragment_cell *s = c->state;

	cell_unread(&s->reader);
}

/* The existing context, restarted if its driver has exited, or a new one. NULL: answered. */
static struct context *fragment_cell_context(struct call *c, struct box *b)
{
	struct context_want want = { .language = call_text(c, "cell_language", "python"),
				     .standing = 1 };
	struct context *ctx = context_standing(b, want.language);
	struct err e;

	if (ctx ? ctx->state == CONTEXT_DEAD && context_restart(ctx, &e) < 0
		: context_new(b, &want, &ctx, &e) < 0) {
		call_fail(c, &e);
		return NULL;
	}
	return ctx;
}

void fragment_cell_run(struct call *c, struct box *b)
{
	const json_t *code = call_get(c, "cell_code");
	int64_t usual_ms = (int64_t)isolation_usual_ms(&b->row, c->api->fleet.conf.cell_ms);
	struct cell_want want = { .code = json_string_value(code),
				  .code_len = json_string_length(code),
				  .timeout_ms = plan_limits_run_ms(
					  c->api, c->who.team,
					  (uint64_t)call_int(c, "timeout_ms", usual_ms)),
				  .no_input = 1 };
	struct fragment_cell *s = call_alloc(c, sizeof(*s));
	struct context *ctx;
	struct cell *x;

	box_wake(b);
	call_hold(c, b);
	ctx = fragment_cell_context(c, b);
	x = ctx ? cells_give(c, ctx, &want) : NULL;
	if (!x)
		return;
	*s = (struct fragment_cell){ .reader.news = fragment_cell_update, .call = c };
	memcpy(s->context, ctx->row.id, sizeof(s->context));
	c->state = s;
	c->drop = fragment_cell_dropped;
	cell_read(x, &s->reader);
	fragment_cell_update(&s->reader);
	cell_unref(x);
}
