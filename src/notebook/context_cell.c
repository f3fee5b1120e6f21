/* context_cell.c - the cells of a context: they wait, run one after the other, end and are kept. */
#include "notebook/context_internal.h"
#include "base/cleanup.h"
#include "fleet/exec.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Keeps the newest finished cells: at most CONTEXT_KEPT, with at most CONTEXT_KEPT_BYTES of output
 * besides that of the newest. */
static void context_cell_keep(struct context *c, struct cell *take_cell)
{
	size_t bytes = 0;
	unsigned n = 0;

	take_cell->next = c->kept;
	c->kept = take_cell;
	for (struct cell **at = &c->kept; *at;) {
		struct cell *x = *at;

		bytes += n ? x->out[0].len + x->out[1].len + x->event_bytes : 0;
		if (++n <= CONTEXT_KEPT && bytes <= CONTEXT_KEPT_BYTES) {
			at = &x->next;
			continue;
		}
		*at = x->next;
		cell_unref(x);
	}
}

/* Fills the row for a cell that starts now. */
static void begin_row(struct context *c, const struct cell *x)
{
	memcpy(c->row.from, c->at, sizeof(c->at));
	c->row.status[0] = 0;
	c->row.answers = 0;
	c->row.began_ns = x->began_ns;
	c->row.deadline_ns = x->timeout_ms ? x->began_ns + (int64_t)x->timeout_ms * 1000000 : 0;
	c->row.max_output = x->max_output;
}

static void begin_cell(struct context *c, struct cell *take_cell, struct buf *line)
{
	c->current = take_cell;
	take_cell->next = NULL;
	take_cell->state = CELL_RUNNING;
	take_cell->number = c->row.cell += 1 + (uint64_t)c->skip_number;
	c->skip_number = 0;
	take_cell->began_ns = fleet_now_ns();
	memcpy(take_cell->from, c->at, sizeof(c->at));
	driver_msg_run(line, take_cell->number, buf_str(&take_cell->run), take_cell->run.len,
		       take_cell->env);
	buf_fini(&take_cell->run);
	begin_row(c, take_cell);
	c->said_before = 0; /* the last line is this server's */
	c->foreign = 0;
	c->interrupted = 0;
	context_become(c, CONTEXT_BUSY);
	box_hold(c->box);
}

/* Until init has reported how many bytes the channel has taken nothing is sent, and the count of
 * this server may be wrong: the row is marked so, and context_told() writes the right count
 * before the first byte is sent. A row with this mark belongs to a line that was never sent. */
static void say_line(struct context *c, const struct buf *line)
{
	struct exec *r = context_run_of(c);

	if (!r)
		return;
	c->row.said = exec_channel_send(r, line->p, line->len);
	if (r->input_unknown)
		c->row.said = CONTEXT_UNSAID;
}

static void say_cell(struct context *c, const struct buf *line)
{
	say_line(c, line);
	context_set_clock(c);
}

/* With another server beside this one the row is read and written before the driver gets the
 * cell, in one transaction: so two cells never have one number, nor are two lines sent at once.
 * 0: a cell of the other server runs, and this one waits for its end. */
static int run_shared(struct context *c, struct cell *take_cell)
{
	auto_buf struct buf line = { 0 };
	struct err e;
	int grouped = store_begin(c->box->fleet->store, &e) == 0;

	context_sync(c);
	if (!c->current) {
		begin_cell(c, take_cell, &line);
		c->row.said = CONTEXT_UNSAID;
		context_write_row(c);
	}
	if (grouped)
		(void)!store_commit(c->box->fleet->store, &e);
	if (c->current != take_cell)
		return 0;
	say_cell(c, &line);
	context_write_row(c);
	cell_tell(take_cell);
	return 1;
}

static void run_cell(struct context *c, struct cell *take_cell)
{
	auto_buf struct buf line = { 0 };

	begin_cell(c, take_cell, &line);
	say_cell(c, &line);
	context_write_row(c);
	cell_tell(take_cell);
}

static void wait_in_front(struct context *c, struct cell *x)
{
	x->next = c->queue;
	c->queue = x;
	c->queued++;
	c->queued_bytes += x->run.len;
}

/* 1: an earlier server may have sent a part of a line, or a cell without a row. context_told() is
 * called when init has answered. */
static int must_count_first(struct context *c)
{
	struct exec *r = context_run_of(c);

	if (!c->said_before || !c->box->fleet->alone || !r || r->over)
		return 0;
	exec_input_count(r);
	return 1;
}

void context_next_cell(struct context *c)
{
	struct cell *x = c->queue;

	if (!x || c->state != CONTEXT_IDLE || must_count_first(c))
		return;
	c->queue = x->next;
	c->queued--;
	c->queued_bytes -= x->run.len;
	if (c->box->fleet->alone)
		run_cell(c, x);
	else if (!run_shared(c, x))
		wait_in_front(c, x);
}

/* The running cell has ended; its client is notified before the row is written. */
void context_end_cell(struct context *c, json_t *take_end)
{
	struct cell *x = c->current;
	const char *status = json_string_value(json_object_get(take_end, "status"));

	c->current = NULL;
	snprintf(c->row.status, sizeof(c->row.status), "%s", status ? status : "");
	if (c->row.deadline_ns != CONTEXT_TOLD) /* a server that reads the row later finds the
						 * reason in it */
		c->row.deadline_ns = 0;
	c->killing = NULL;
	cell_over(x, take_end);
	cell_ref(x);
	context_cell_keep(c, x);
	cell_tell(x);
	cell_unref(x);
	box_release(c->box);
	/* The other server may have begun the next cell: its row must not be overwritten. */
	if (!c->foreign || c->box->fleet->alone)
		context_write_row(c);
}

void context_end_queue(struct context *c, const char *cause, const char *message)
{
	while (c->queue) {
		struct cell *x = c->queue;

		c->queue = x->next;
		cell_over(x, json_pack("{s:s, s:s, s:s}", "status", "dropped", "cause", cause,
				       "message", message));
		cell_tell(x);
		cell_unref(x);
	}
	c->queued = 0;
	c->queued_bytes = 0;
}

/* ---- asking it ---- */

int context_cell(struct context *c, const struct cell_want *want, struct cell **out, struct err *e)
{
	struct cell *x, **at = &c->queue;

	if (c->state == CONTEXT_DEAD)
		return err_set(e, ERR_CONFLICT, "context %s has ended: %.150s", c->row.id,
			       c->end.why ? c->end.why : c->end.cause);
	if (c->queued >= CONTEXT_QUEUE || c->queued_bytes + want->code_len > CONTEXT_QUEUED)
		return err_set(e, ERR_LIMIT, "context %s has %u cells waiting already", c->row.id,
			       c->queued);
	x = cell_new();
	buf_add(&x->run, want->code, want->code_len);
	x->env = json_incref(want->env);
	x->timeout_ms = want->timeout_ms;
	x->max_output = want->max_output ? want->max_output : CELL_OUTPUT;
	x->no_input = want->no_input;
	if (want->before)
		x->before = *want->before;
	*out = cell_ref(x);
	while (*at)
		at = &(*at)->next;
	*at = x;
	c->queued++;
	c->queued_bytes += x->run.len;
	context_next_cell(c); /* if the context is idle, the queue was empty */
	return 0;
}

struct cell *context_cell_find(const struct context *c, uint64_t number)
{
	if (c->current && c->current->number == number)
		return c->current;
	for (struct cell *x = c->kept; x; x = x->next)
		if (x->number == number)
			return x;
	return NULL;
}

int context_interrupt(struct context *c)
{
	struct exec *r = context_run_of(c);

	if (c->state != CONTEXT_BUSY || !r)
		return 0;
	exec_send_signal(r, SIGINT);
	return 1;
}

void context_cell_cancel(struct context *c, struct cell *x)
{
	if (x == c->current) {
		context_interrupt(c);
		return;
	}
	for (struct cell **at = &c->queue; *at; at = &(*at)->next) {
		if (*at != x)
			continue;
		*at = x->next;
		c->queued--;
		c->queued_bytes -= x->run.len;
		cell_over(x, json_pack("{s:s, s:s}", "status", "dropped", "cause", "cancelled"));
		cell_tell(x);
		cell_unref(x);
		return;
	}
}

int context_input(struct context *c, const char *text, size_t n, struct err *e)
{
	auto_buf struct buf line = { 0 };
	struct exec *r = context_run_of(c);

	if (!c->current || c->current->asked <= c->current->answered || !r)
		return err_set(e, ERR_CONFLICT, "no cell of context %s waits for input", c->row.id);
	driver_msg_input(&line, c->current->number, text, n);
	c->row.answers = ++c->current->answered;
	say_line(c, &line);
	context_write_row(c);
	return 0;
}
