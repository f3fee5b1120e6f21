/* execute.c - POST /execute: runs one cell and sends its output line by line.
 *
 *   waits for its turn -> number_of_executions -> stdout, stderr, result, error ... -> end_of_execution
 *
 * A client that disconnects interrupts the cell. When the box ends, the connection is cut: the
 * client then asks whether the box exists, and reports to its caller. */
#include "v1box/automatic.h"
#include "v1run/cells.h"
#include "api/fields.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "e2b/interpreter.h"
#include "e2b/oneshot.h"
#include "notebook/context.h"
#include "lang/driver.h"
#include "lang/lang.h"

#include <string.h>

enum {
	PIECE = 64 * 1024,
	SILENCE_MS = 5000,
	LEFT_MS = 100,
	PARTIAL_MS = 50, /* time for the rest of a line: some runtimes write one in pieces */
};

const struct field execute_fields[] = {
	{ "code", FIELD_TEXT, 1, 0, CONTEXT_CODE, "the code to run", NULL },
	{ "context_id", FIELD_TEXT, 0, 0, 200, "id of the context", NULL },
	{ "language", FIELD_TEXT, 0, 0, 64, "run in the default context of this language", NULL },
	{ "env_vars", FIELD_MAP, 0, 0, 1000, "environment variables for this execution", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

struct execute_execution {
	struct cell_reader reader;
	struct call *call;
	struct timer silence;
	struct timer partial; /* set while the beginning of a line is held back */
	int partial_due;      /* it is sent now, though its line end has not arrived */
	char context[ID_MAX + 1];
	int begun, failed; /* its number was sent, an error was sent */
	int full;
};

/* ---- Lines for the client ---- */

static void execute_tell(struct execute_execution *x, json_t *take_line)
{
	/* All ASCII: E2B's reader decodes pieces of a connection one by one. */
	auto_free char *text = json_dumps(take_line, JSON_COMPACT | JSON_ENSURE_ASCII);
	size_t n = text ? strlen(text) : 0;

	json_decref(take_line);
	if (!text)
		abort();
	text[n] = '\n'; /* instead of its NUL: one write is one line */
	x->full |= http_write(x->call->req, text, n + 1);
	timer_set(&x->silence, SILENCE_MS);
}

static void silence_due(struct timer *t)
{
	struct execute_execution *x = loop_owner(t, struct execute_execution, silence);

	if (x->full)
		timer_set(t, SILENCE_MS); /* unsent output shows that the cell is active */
	else
		execute_tell(x, json_pack("{s:s}", "type", "keepalive"));
}

static struct context *context_of(const struct execute_execution *x)
{
	const struct box *b = fleet_find(&x->call->api->fleet, x->call->held);

	return b ? context_find(b, x->context) : NULL;
}

static void tell_number(struct execute_execution *x)
{
	const struct context *ctx = context_of(x);
	uint64_t number = x->reader.cell->number, born = ctx ? ctx->born : 0;

	x->begun = 1;
	if (number)
		execute_tell(x, json_pack("{s:s, s:I}", "type", "number_of_executions",
					  "execution_count",
					  (json_int_t)(number > born ? number - born : number)));
}

/* E2B's clients cannot answer a request for input: the cell reads an end of file. */
static void refuse_input(struct execute_execution *x)
{
	struct context *ctx = context_of(x);
	struct err e;

	if (ctx && ctx->current == x->reader.cell && ctx->current->asked > ctx->current->answered)
		(void)!context_input(ctx, NULL, 0, &e); /* it may just have ended */
}

static void tell_event(struct execute_execution *x, const struct cell_piece *p)
{
	json_t *line = exec_events_result(p->bytes, p->n);
	const char *type = json_string_value(json_object_get(line, "type"));

	x->failed |= type && !strcmp(type, "error");
	if (line)
		execute_tell(x, line);
}

/* Keeps the beginning of an incomplete line out of p, for PARTIAL_MS at most. 0: nothing else is
 * in p. */
static int execute_hold_partial_line(struct execute_execution *x, struct cell_piece *p)
{
	const char *end = memrchr(p->bytes, '\n', p->n);
	size_t whole = end ? (size_t)(end - p->bytes) + 1 : 0;

	if (p->last || p->n == PIECE || whole == p->n || x->partial_due) {
		x->partial_due = 0;
		timer_clear(&x->partial);
		return 1;
	}
	if (!timer_pending(&x->partial))
		timer_set(&x->partial, PARTIAL_MS);
	p->after[p->what == CELL_STDERR] -= p->n - whole;
	p->n = whole;
	return whole > 0;
}

/* 1: there may be more. */
static int tell_one(struct execute_execution *x)
{
	struct cell_piece p = cell_next(&x->reader, PIECE);
	json_t *line;

	switch (p.what) {
	case CELL_NOTHING:
	case CELL_END:
		return 0;
	case CELL_STDOUT:
	case CELL_STDERR:
		if (!execute_hold_partial_line(x, &p))
			return 0;
		line = exec_events_output(&p);
		if (!line)
			return 0;
		execute_tell(x, line);
		break;
	case CELL_EVENT:
		tell_event(x, &p);
		break;
	}
	cell_told(&x->reader, &p);
	return 1;
}

/* ---- its end ---- */

static void execute_stop(struct execute_execution *x)
{
	cell_unread(&x->reader);
	timer_fini(&x->silence);
	timer_fini(&x->partial);
	x->call->drop = NULL;
}

/* E2B's names of abnormal ends; "": the driver ended the cell normally. */
static const char *execute_unnatural(const char *status, const char *cause)
{
	if (!strcmp(status, "ok") || !strcmp(status, "error") || !strcmp(status, "interrupted"))
		return "";
	if (!strcmp(status, "dropped") || !strcmp(cause, "removed"))
		return "UnexpectedEndOfExecution";
	return "ContextRestarting";
}

/* A cell that never started has no error of its own; the context has the reason why its
 * interpreter did not start. */
static const char *why_it_ended(const struct execute_execution *x, const char *status,
				const char *message)
{
	const struct context *ctx = context_of(x);

	if (!strcmp(status, "dropped") && ctx && ctx->end.why)
		return ctx->end.why;
	return *message ? message : "its interpreter has ended";
}

static void tell_dropped_output(struct execute_execution *x)
{
	struct cell_piece p = {
		.what = CELL_STDERR,
		.last = 1,
		.bytes = "[more output than is kept of one execution was dropped]\n"
	};

	p.n = strlen(p.bytes);
	execute_tell(x, exec_events_output(&p));
}

static const char *text_in(const json_t *doc, const char *name)
{
	const char *s = json_string_value(json_object_get(doc, name));

	return s ? s : "";
}

/* 1: the box ended with it, so a status of the cell would be wrong. */
static int box_is_gone(const struct execute_execution *x)
{
	const struct box *b = fleet_find(&x->call->api->fleet, x->call->held);

	return !b || b->state != BOX_RUNNING;
}

static void execute_finish(struct execute_execution *x)
{
	const json_t *end = x->reader.cell->end;
	const char *status = text_in(end, "status"),
		   *name = execute_unnatural(status, text_in(end, "cause"));
	struct http_req *req = x->call->req;

	if (*name && box_is_gone(x)) {
		execute_stop(x);
		http_abort(req);
		return;
	}
	if (json_is_true(json_object_get(end, "truncated")))
		tell_dropped_output(x);
	if (*name)
		execute_tell(x, exec_events_error(name, why_it_ended(x, status,
								     text_in(end, "message"))));
	else if (!x->failed && strcmp(status, "ok") != 0)
		execute_tell(x,
			     exec_events_error(!strcmp(status, "interrupted") ? "KeyboardInterrupt"
									      : "Error",
					       ""));
	execute_tell(x, json_pack("{s:s}", "type", "end_of_execution"));
	execute_stop(x);
	http_end(req);
}

static void tell_more(struct cell_reader *reader)
{
	struct execute_execution *x = loop_owner(reader, struct execute_execution, reader);
	const struct cell *cell = reader->cell;

	if (cell->state == CELL_WAITING)
		return;
	if (!x->begun)
		tell_number(x);
	while (!x->full && tell_one(x))
		;
	if (!x->full && cell->state == CELL_OVER)
		execute_finish(x);
	else
		refuse_input(x);
}

static void execute_partial_due(struct timer *t)
{
	struct execute_execution *x = loop_owner(t, struct execute_execution, partial);

	x->partial_due = 1;
	tell_more(&x->reader); /* may free x */
}

static void client_drains(struct http_req *req)
{
	struct call *c = req->user;
	struct execute_execution *x = c->state;

	x->full = 0;
	if (x->reader.cell)
		tell_more(&x->reader);
}

/* The client may only have closed its sending side. If it has disconnected, the second write
 * from here on fails. */
static void client_may_have_left(struct http_req *req)
{
	struct call *c = req->user;
	struct execute_execution *x = c->state;

	if (!x->reader.cell)
		return;
	execute_tell(x, json_pack("{s:s}", "type", "keepalive"));
	timer_set(&x->silence, LEFT_MS);
}

static void client_left(struct call *c)
{
	struct execute_execution *x = c->state;
	struct context *ctx = context_of(x);
	struct cell *cell = cell_ref(x->reader.cell);

	execute_stop(x);
	if (ctx && cell->state != CELL_OVER)
		context_cell_cancel(ctx, cell);
	cell_unref(cell);
}

/* ---- the beginning ---- */

static void execute_follow(struct call *c, const struct context *ctx, struct cell *cell)
{
	struct execute_execution *x = call_alloc(c, sizeof(*x));

	*x = (struct execute_execution){ .reader.news = tell_more, .call = c };
	memcpy(x->context, ctx->row.id, sizeof(x->context));
	timer_init(&x->silence, c->api->loop, silence_due);
	timer_set(&x->silence, SILENCE_MS);
	timer_init(&x->partial, c->api->loop, execute_partial_due);
	c->state = x;
	c->drop = client_left;
	c->req->on_drain = client_drains;
	c->req->on_eof = client_may_have_left;
	http_set(c->req, "Cache-Control", "no-store");
	http_set(c->req, "X-Accel-Buffering", "no");
	http_stream(c->req, 200, "application/x-ndjson", UINT64_MAX);
	cell_read(cell, &x->reader);
	tell_more(&x->reader);
}

/* The context that the request names, or the default one of its language. 1: the language keeps
 * no state and runs each cell by itself. */
static int execute_choose(struct call *c, struct context **out)
{
	const char *id = call_text(c, "context_id", ""), *language = call_text(c, "language", "");

	*out = NULL;
	if (*id && *language) {
		call_error(c, 400, "invalid", "Only one of context_id or language can be provided",
			   NULL, NULL);
		return 0;
	}
	if (*id) {
		*out = interpreter_find(c, id, &language);
		if (*out || !*language)
			return 0;
	} else {
		language = interpreter_language(c, language);
	}
	if (lang_named(language) && !driver_of(language))
		return 1;
	*out = interpreter_default(c, language);
	return 0;
}

void execute(struct call *c)
{
	const json_t *code = call_get(c, "code");
	struct cell_want want = { .code = json_string_value(code),
				  .code_len = json_string_length(code),
				  .env = call_get(c, "env_vars"),
				  .max_output = CELL_OUTPUT_MAX };
	struct context *ctx;
	struct cell *cell;

	if (automatic_before(c, e2b_find_box(c), CHECKPOINT_STEP_CELL, execute))
		return;
	box_wake(e2b_find_box(c));
	if (execute_choose(c, &ctx)) {
		oneshot_exec(c, interpreter_language(c, call_text(c, "language", "")));
		return;
	}
	if (!ctx || !interpreter_alive(c, ctx))
		return;
	cell = cells_give(c, ctx, &want);
	if (!cell)
		return;
	execute_follow(c, ctx, cell);
	cell_unref(cell);
}
