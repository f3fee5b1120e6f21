/* cells.c - see cells.h. The field "at" of every event is the position after it: bytes of stdout,
 * of stderr and of the channel. A client that was disconnected requests the events after the last
 * one it received. */
#include "v1run/cells.h"
#include "v1box/automatic.h"
#include "v1box/boxes.h"
#include "v1run/contexts.h"
#include "api/plan_limits.h"
#include "api/event_stream.h"
#include "v1run/cells_oneshot.h"
#include "api/quota.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "fleet/box_secrets.h"
#include "fleet/isolation.h"
#include "record/record.h"
#include "notebook/context.h"
#include "lang/driver.h"
#include "lang/lang.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 64 * 1024, AUDITED = 200 };

#define CELL_FIELDS                                                                                                          \
	{ "code", FIELD_TEXT, 1, 0, CONTEXT_CODE, "the code to run", NULL },                                                 \
		{ "timeout_ms",                                                                                              \
		  FIELD_INT,                                                                                                 \
		  0,                                                                                                         \
		  1,                                                                                                         \
		  UINT32_MAX,                                                                                                \
		  "time until the cell is interrupted (default limits.default_cell_time)",                                   \
		  NULL },                                                                                                    \
		{ "env", FIELD_MAP, 0, 0, 1000, "environment variables for this cell", NULL },                               \
		{ "input",                                                                                                   \
		  FIELD_BOOL,                                                                                                \
		  0,                                                                                                         \
		  0,                                                                                                         \
		  0,                                                                                                         \
		  "true: questions wait for POST .../input; false: they read end of file (default for a plain JSON answer)", \
		  NULL },                                                                                                    \
	{                                                                                                                    \
		"max_output", FIELD_INT, 0, 0, CELL_OUTPUT_MAX,                                                              \
			"maximum number of bytes returned of each stream (default 4 MiB)", NULL                              \
	}

const struct field cells_fields[] = {
	CELL_FIELDS,
	{ 0 },
};
const struct field cells_standing_fields[] = {
	{ "language", FIELD_TEXT, 1, 1, 32, "language: python, node, bash, ..., or jupyter:NAME",
	  NULL },
	CELL_FIELDS,
	{ 0 },
};
const struct field cells_events_query[] = {
	{ "after", FIELD_TEXT, 0, 0, 64, "`at` of the last event that the client has", NULL },
	{ 0 },
};

struct cells_reading {
	struct cell_reader reader;
	struct call *call;
	struct event_stream event_stream;
	enum event_stream_kind kind;
	int begun; /* the event "start" was sent */
	int full;
	char context[ID_MAX + 1], language[STORE_WORD + 1];
};

/* ---- event stream ---- */

static void place_text(const uint64_t at[CELL_STREAMS], char out[64])
{
	snprintf(out, 64, "%" PRIu64 ".%" PRIu64 ".%" PRIu64, at[0], at[1], at[2]);
}

static int send_line(struct cells_reading *r, struct buf *line, const char *at)
{
	auto_buf struct buf whole = { 0 };

	if (r->kind == EVENT_STREAM_SSE)
		buf_printf(&whole, "id: %s\ndata: ", at);
	buf_add(&whole, line->p, line->len);
	buf_puts(&whole, r->kind == EVENT_STREAM_SSE ? "\n\n" : "\n");
	return http_write(r->call->req, whole.p, whole.len);
}

static void output_line(struct buf *line, const struct cell_piece *p, int text)
{
	buf_printf(line, "{\"type\":\"%s\",\"offset\":%" PRIu64 ",",
		   p->what == CELL_STDOUT ? "stdout" : "stderr", p->offset);
	if (text) {
		buf_puts(line, "\"data\":");
		event_stream_quote(line, p->bytes, p->n);
	} else {
		buf_puts(line, "\"base64\":\"");
		base64_encode(line, p->bytes, p->n);
		buf_putc(line, '"');
	}
}

/* 0: the last byte of a character has not arrived yet. */
static int tell_output(struct cell_piece *p, struct buf *line)
{
	int bad;
	size_t whole = utf8_complete(p->bytes, p->n, &bad);
	/* Text has no NUL; escaping many of them would make the event six times as long. */
	int text = !bad && !memchr(p->bytes, 0, p->n) && (whole || !p->n);

	if (!bad && !whole && !p->last && p->n < PIECE)
		return 0;
	if (text) {
		p->after[p->what == CELL_STDERR] -= p->n - whole;
		p->n = whole;
	}
	output_line(line, p, text);
	return 1;
}

static json_t *end_of(const struct cells_reading *r)
{
	json_t *end = json_copy(r->reader.cell->end);

	json_object_set_new(end, "context", json_string(r->context));
	return end;
}

static void add_json(struct buf *line, json_t *take_doc)
{
	auto_free char *text = json_dumps(take_doc, JSON_COMPACT);

	json_decref(take_doc);
	if (!text)
		abort();
	buf_add(line, text, strlen(text) - 1); /* without the closing brace */
	buf_putc(line, ',');
}

static void tell_start(struct cells_reading *r)
{
	const struct cell *x = r->reader.cell;
	auto_buf struct buf line = { 0 };
	char at[64];

	r->begun = 1;
	if (!x->number)
		return; /* the cell was never started */
	place_text(r->reader.told, at);
	add_json(&line, json_pack("{s:s, s:s, s:s, s:I}", "type", "start", "context", r->context,
				  "language", r->language, "cell", (json_int_t)x->number));
	buf_printf(&line, "\"at\":\"%s\"}", at);
	r->full |= send_line(r, &line, at);
}

/* 1: there may be more events. */
static int tell_one(struct cells_reading *r)
{
	struct cell_piece p = cell_next(&r->reader, PIECE);
	auto_buf struct buf line = { 0 };
	char at[64];

	switch (p.what) {
	case CELL_NOTHING:
		return 0;
	case CELL_STDOUT:
	case CELL_STDERR:
		if (!tell_output(&p, &line))
			return 0;
		buf_putc(&line, ',');
		break;
	case CELL_EVENT:
		buf_add(&line, p.bytes, p.n - 1);
		buf_putc(&line, ',');
		break;
	case CELL_END:
		add_json(&line, end_of(r));
		break;
	}
	place_text(p.after, at);
	buf_printf(&line, "\"at\":\"%s\"}", at);
	r->full |= send_line(r, &line, at);
	cell_told(&r->reader, &p);
	return p.what != CELL_END;
}

static void stop_reading(struct call *c)
{
	struct cells_reading *r = c->state;

	cell_unread(&r->reader);
}

static void cells_finish(struct cells_reading *r)
{
	struct call *c = r->call;

	cell_unread(&r->reader);
	c->drop = NULL;
	http_end(c->req);
}

static void tell_more(struct cell_reader *reader)
{
	struct cells_reading *r = loop_owner(reader, struct cells_reading, reader);
	const struct cell *x = reader->cell;

	if (x->state == CELL_WAITING)
		return;
	if (!r->begun)
		tell_start(r);
	while (!r->full && tell_one(r))
		;
	if (!r->full && x->state == CELL_OVER)
		cells_finish(r);
}

static void client_drains(struct http_req *req)
{
	struct call *c = req->user;
	struct cells_reading *r = c->state;

	r->full = 0;
	if (r->reader.cell)
		tell_more(&r->reader);
}

/* ---- one answer at the end ---- */

static void set_events(json_t *doc, const struct cell *x)
{
	json_t *results = json_array(), *error = NULL;

	for (unsigned i = 0; i < x->nevents; i++) {
		json_t *ev = json_loads(x->events[i].text, JSON_ALLOW_NUL, NULL);
		const char *type = json_string_value(json_object_get(ev, "type"));

		if (type && !strcmp(type, "result")) {
			json_object_del(ev, "type");
			json_array_append(results, ev);
		} else if (type && !strcmp(type, "error")) {
			json_object_del(ev, "type");
			json_decref(error);
			error = json_incref(ev);
		}
		json_decref(ev);
	}
	json_object_set_new(doc, "results", results);
	json_object_set_new(doc, "error", error ? error : json_null());
}

/* call_json() rounds numbers, which is fine for figures of the server, but not for numbers in a
 * result. */
static void cells_answer(struct call *c, json_t *take_doc)
{
	auto_free char *text = json_dumps(take_doc, JSON_COMPACT);

	json_decref(take_doc);
	if (!text)
		abort();
	http_reply(c->req, 200, "application/json", text, strlen(text));
}

static void tell_whole(struct cell_reader *reader)
{
	struct cells_reading *r = loop_owner(reader, struct cells_reading, reader);
	struct cell *x = reader->cell;
	struct call *c = r->call;
	struct box *b;
	json_t *doc;

	if (x->state != CELL_OVER)
		return;
	doc = end_of(r);
	json_object_del(doc, "type");
	record_set_output(doc, "stdout", &x->out[0]);
	record_set_output(doc, "stderr", &x->out[1]);
	set_events(doc, x);
	b = fleet_find(&c->api->fleet, c->held);
	if (b)
		box_secrets_redact_json(b, doc);
	cell_unread(reader);
	c->drop = NULL;
	cells_answer(c, doc);
}

/* ---- start ---- */

static struct cells_reading *reading_new(struct call *c, const struct context *ctx,
					 enum event_stream_kind kind)
{
	struct cells_reading *r = call_alloc(c, sizeof(*r));

	*r = (struct cells_reading){ .call = c, .kind = kind };
	memcpy(r->context, ctx->row.id, sizeof(r->context));
	memcpy(r->language, ctx->row.language, sizeof(r->language));
	c->state = r;
	c->drop = stop_reading;
	c->req->on_drain = client_drains;
	if (kind != EVENT_STREAM_NONE)
		event_stream_begin(&r->event_stream, c->req, kind);
	return r;
}

static void read_cell(struct cells_reading *r, struct cell *x)
{
	r->reader.news = r->kind == EVENT_STREAM_NONE ? tell_whole : tell_more;
	cell_read(x, &r->reader);
	r->reader.news(&r->reader);
}

/* Records which key ran which code; only the beginning of the code. */
static void cells_audit(struct call *c, const struct context *ctx, const char *code, size_t n)
{
	int bad;

	n = n < AUDITED ? n : utf8_complete(code, AUDITED, &bad);
	call_audit_more(c, "cell.run", ctx->row.id, "ok",
			json_pack("{s:s, s:o}", "language", ctx->row.language, "code",
				  json_stringn(code, n)));
}

struct cell *cells_give(struct call *c, struct context *ctx, const struct cell_want *want)
{
	struct cell_want wanted = *want;
	struct cell *x;
	struct err e;

	wanted.before = &c->before;
	if (box_check_env(want->env, &e) < 0) {
		call_fail(c, &e);
		return NULL;
	}
	if (!quota_run(c))
		return NULL;
	if (context_cell(ctx, &wanted, &x, &e) < 0) {
		call_error(c, call_status(&e), err_kind_name(e.kind), e.msg, NULL,
			   ctx->state == CONTEXT_DEAD ? "POST .../restart" : NULL);
		return NULL;
	}
	cells_audit(c, ctx, want->code, want->code_len); /* written while the cell runs */
	return x;
}

static void run_in(struct call *c, struct context *ctx)
{
	const json_t *code = call_get(c, "code"), *input = call_get(c, "input");
	int64_t usual_ms = (int64_t)isolation_usual_ms(&ctx->box->row, c->api->fleet.conf.cell_ms);
	enum event_stream_kind kind = event_stream_wanted(c);
	struct cell_want want = {
		.code = json_string_value(code),
		.code_len = json_string_length(code),
		.env = call_get(c, "env"),
		.timeout_ms = plan_limits_run_ms(c->api, c->who.team,
						 (uint64_t)call_int(c, "timeout_ms", usual_ms)),
		.max_output = (uint64_t)call_int(c, "max_output", CELL_OUTPUT),
		.no_input = input ? json_is_false(input) : kind == EVENT_STREAM_NONE
	};
	struct cell *x = cells_give(c, ctx, &want);

	if (!x)
		return;
	read_cell(reading_new(c, ctx, kind), x);
	cell_unref(x);
}

void cells_run(struct call *c)
{
	struct context *ctx = contexts_of(c);

	if (ctx && !automatic_before(c, ctx->box, CHECKPOINT_STEP_CELL, cells_run))
		run_in(c, ctx);
}

void cells_run_standing(struct call *c)
{
	struct context_want want = { .language = contexts_language(call_text(c, "language", "")),
				     .standing = 1 };
	struct box *b = call_box(c, 0);
	struct context *ctx = b ? context_standing(b, want.language) : NULL;
	struct err e;

	if (!b || automatic_before(c, b, CHECKPOINT_STEP_CELL, cells_run_standing))
		return;
	if (lang_named(want.language) && !driver_of(want.language)) {
		oneshot_run(c, b);
		return;
	}
	box_wake(b);
	if (!ctx && context_new(b, &want, &ctx, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	run_in(c, ctx);
}

/* ---- events of an existing cell ---- */

static int parse_place(const char *text, uint64_t out[CELL_STREAMS])
{
	int used = 0;

	return strspn(text, "0123456789.") == strlen(text) &&
			       sscanf(text, "%" SCNu64 ".%" SCNu64 ".%" SCNu64 "%n", &out[0],
				      &out[1], &out[2], &used) == 3 &&
			       !text[used]
		       ? 0
		       : -1;
}

static uint64_t cell_number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);

	return *text >= '1' && *text <= '9' && !*end ? n : 0;
}

void cells_events(struct call *c)
{
	const char *after = call_query(c, "after"), *last = http_header(c->req, "last-event-id");
	struct context *ctx = contexts_of(c);
	uint64_t place[CELL_STREAMS] = { 0 };
	struct cells_reading *r;
	struct cell *x;

	if (!ctx)
		return;
	after = after ? after : last;
	if (after && parse_place(after, place) < 0) {
		call_error(c, 400, "invalid", "?after= is not an event's `at`", after, NULL);
		return;
	}
	x = context_cell_find(ctx, cell_number(call_param(c, 2)));
	if (!x) {
		call_error(c, 404, "not_found", "there is no such cell, or it is no longer stored",
			   call_param(c, 2), "the last few of a context are kept");
		return;
	}
	r = reading_new(c, ctx,
			event_stream_wanted(c) == EVENT_STREAM_SSE ? EVENT_STREAM_SSE
								   : EVENT_STREAM_NDJSON);
	memcpy(r->reader.told, place, sizeof(place));
	r->begun = after != NULL;
	read_cell(r, x);
}
