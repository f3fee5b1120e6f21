/* context_events.c - handles events of a driver: its messages on the channel, the output of
 * cells, its end. */
#include "notebook/context_internal.h"
#include "base/cleanup.h"
#include "record/record.h"

#include <stdio.h>
#include <string.h>

static void broke_rules(struct context *c, const char *why)
{
	context_kill_driver(c);
	context_die(c, "protocol", why,
		    "restart it: what ran in it may have written to descriptor 3");
}

/* Another server started it, or a server that ended before it could write the row. */
static void adopt_cell(struct context *c, uint64_t number)
{
	struct cell *x = cell_new();

	x->state = CELL_RUNNING;
	x->number = c->row.cell = number;
	x->began_ns = c->row.began_ns = fleet_now_ns();
	memcpy(x->from, c->at, sizeof(c->at));
	x->from[2] = c->line_at; /* with this event, which may be the end of the cell */
	memcpy(c->row.from, x->from, sizeof(c->row.from));
	c->row.status[0] = 0;
	c->row.answers = 0;
	c->current = x;
	c->foreign = 1;
	context_become(c, CONTEXT_BUSY);
	box_hold(c->box);
}

static void context_ready(struct context *c, struct driver_msg_event *ev)
{
	const char *version = json_string_value(json_object_get(ev->doc, "version"));

	if (c->state != CONTEXT_STARTING) {
		broke_rules(c, "the driver said that it is ready a second time");
		return;
	}
	snprintf(c->version, sizeof(c->version), "%s", version ? version : "");
	context_become(c, CONTEXT_IDLE);
	context_set_clock(c);
	context_tell_waiters(c);
	context_next_cell(c);
}

static void context_ended(struct context *c, struct driver_msg_event *ev)
{
	json_t *end = json_incref(ev->doc), *count = json_object_get(end, "count");

	if (json_is_integer(count) && (uint64_t)json_integer_value(count) <= ev->cell)
		c->born = ev->cell - (uint64_t)json_integer_value(count);
	if (c->row.deadline_ns == CONTEXT_TOLD)
		json_object_set_new(end, "cause", json_string("timeout"));
	context_become(c, CONTEXT_IDLE);
	context_end_cell(c, end);
	context_set_clock(c);
	context_next_cell(c);
}

/* A request for input that no client can answer must not delay the cells after this one. */
static void refuse_input(struct context *c)
{
	struct err e;

	if (c->current && c->current->no_input)
		(void)!context_input(c, NULL, 0, &e); /* fails only if the driver has ended */
}

/* end: of its line in the channel. */
static void context_on_event(struct context *c, struct driver_msg_event *ev, uint64_t end)
{
	if (ev->kind == DRIVER_MSG_READY) {
		context_ready(c, ev);
		return;
	}
	/* The cell of the other server was executed before that of this server. */
	if (c->current && ev->cell > c->current->number && !c->box->fleet->alone)
		return;
	if (c->state == CONTEXT_STARTING || (c->current && ev->cell > c->current->number)) {
		broke_rules(c, "the driver spoke of a cell that it was not given");
		return;
	}
	if (!c->current && ev->cell > c->row.cell)
		adopt_cell(c, ev->cell);
	if (!c->current || ev->cell < c->current->number)
		return; /* a thread of a cell that has ended */
	if (ev->kind == DRIVER_MSG_END) {
		context_ended(c, ev);
		return;
	}
	c->current->asked += ev->kind == DRIVER_MSG_INPUT;
	cell_event(c->current, end - c->current->from[2], json_incref(ev->doc));
	cell_tell(c->current);
	if (ev->kind == DRIVER_MSG_INPUT)
		refuse_input(c);
}

static void listen_to(struct context *c, uint64_t offset, const char *bytes, size_t n)
{
	while (n && c->state != CONTEXT_DEAD && c->tapped) {
		const char *before = bytes;
		struct driver_msg_event ev;
		struct err e;
		int rc = driver_msg_take(&c->talk, &bytes, &n, &ev, &e);

		offset += (uint64_t)(bytes - before);
		c->at[2] = offset;
		if (rc < 0) {
			broke_rules(c, e.msg);
		} else if (rc) {
			context_on_event(c, &ev, offset);
			json_decref(ev.doc);
			c->line_at = offset;
		}
	}
}

static void reader_reads(struct exec_reader *t, unsigned stream, uint64_t offset, const char *bytes,
			 size_t n)
{
	struct context *c = loop_owner(t, struct context, reader);

	if (stream == 2) {
		listen_to(c, offset, bytes, n);
		return;
	}
	c->at[stream] = offset + n;
	if (c->state == CONTEXT_STARTING && stream == 1)
		buf_add(&c->early_stderr, bytes,
			n < CONTEXT_WORDS - c->early_stderr.len
				? n
				: CONTEXT_WORDS - c->early_stderr.len);
	if (!c->current || offset < c->current->from[stream])
		return;
	cell_output(c->current, stream, offset - c->current->from[stream], bytes, n);
	cell_tell(c->current);
}

/* Ends a cell of which the row has the status. */
static void end_restored(struct context *c)
{
	char status[sizeof(c->row.status)];

	memcpy(status, c->row.status, sizeof(status));
	context_become(c, CONTEXT_IDLE);
	context_end_cell(c, json_pack("{s:s}", "status", status));
	context_set_clock(c);
	context_next_cell(c);
}

/* After a restart: bytes may be missing, if more arrived than init keeps without a reader. */
static void reader_begins(struct exec_reader *t, unsigned stream, uint64_t from, uint64_t tip)
{
	struct context *c = loop_owner(t, struct context, reader);

	(void)tip;
	if (from == c->at[stream])
		return;
	c->at[stream] = from;
	if (c->current)
		c->current->truncated = 1;
	if (stream != 2)
		return;
	c->line_at = from;
	driver_msg_gap(&c->talk);
	if (!c->current || c->row.status[0]) {
		if (c->state == CONTEXT_STARTING)
			context_become(c, CONTEXT_IDLE);
		if (c->current)
			end_restored(c);
	} else {
		context_kill_driver(c);
		context_die(
			c, "lost",
			"what its driver said while no daemon was there was too much to be kept",
			"restart it");
	}
}

static const char *text_in(const json_t *doc, const char *name)
{
	return json_string_value(json_object_get(doc, name));
}

/* The message of the record; a program that exits without one gets a generated message. */
static void ended_as(struct context *c, const json_t *record)
{
	const char *summary = text_in(record, "summary");
	auto_buf struct buf why = { 0 };
	json_t *early_text;

	if (summary)
		buf_puts(&why, summary);
	else
		buf_printf(&why, "its interpreter ended by itself, with status %d",
			   (int)json_integer_value(json_object_get(record, "status")));
	early_text = json_text(buf_str(&c->early_stderr));
	if (c->state == CONTEXT_STARTING && json_string_length(early_text))
		buf_printf(&why, ": %s", json_string_value(early_text));
	json_decref(early_text);
	context_die(c, text_in(record, "cause"), buf_str(&why), text_in(record, "hint"));
}

static void reader_ends(struct exec_reader *t, json_t *record, const struct err *e)
{
	struct context *c = loop_owner(t, struct context, reader);

	context_hang_up(c);
	if (c->restarting)
		context_start_again(c);
	else if (record)
		ended_as(c, record);
	else
		context_die(c, "host", e->msg, NULL);
}

const struct exec_reader_events context_reader_on = { .reading = reader_begins,
						      .output = reader_reads,
						      .over = reader_ends };
