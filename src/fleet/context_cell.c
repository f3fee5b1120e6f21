/* context_cell.c - the cells of a context: they wait, run one after the other, are over and kept. */
#include "fleet/context_life.h"
#include "base/own.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Finished ones are kept for a while, small ones longer than large ones. */
static void keep(struct context *c, struct cell *take_cell)
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

static void run_cell(struct context *c, struct cell *take_cell)
{
	auto_buf struct buf line = { 0 };
	struct run *r = context_run_of(c);

	c->current = take_cell;
	take_cell->next = NULL;
	take_cell->state = CELL_RUNNING;
	take_cell->number = ++c->row.cell;
	take_cell->began_ns = fleet_now_ns();
	memcpy(take_cell->from, c->at, sizeof(c->at));
	talk_run(&line, take_cell->number, buf_str(&take_cell->run), take_cell->run.len,
		 take_cell->env);
	buf_fini(&take_cell->run);
	memcpy(c->row.from, c->at, sizeof(c->at));
	c->row.status[0] = 0;
	c->row.answers = 0;
	c->row.began_ns = take_cell->began_ns;
	c->row.deadline_ns =
		take_cell->timeout_ms
			? take_cell->began_ns + (int64_t)take_cell->timeout_ms * 1000000
			: 0;
	c->row.max_output = take_cell->max_output;
	c->interrupted = 0;
	context_become(c, CONTEXT_BUSY);
	berth_hold(c->berth);
	if (r)
		c->row.said = run_say(r, line.p, line.len);
	context_set_clock(c);
	context_write_row(c);
	cell_tell(take_cell);
}

void context_next_cell(struct context *c)
{
	struct cell *x = c->queue;

	if (!x || c->state != CONTEXT_IDLE)
		return;
	c->queue = x->next;
	c->queued--;
	c->queued_bytes -= x->run.len;
	run_cell(c, x);
}

/* The running one is over; its client hears of it before it is written down. */
void context_end_cell(struct context *c, json_t *take_end)
{
	struct cell *x = c->current;
	const char *status = json_string_value(json_object_get(take_end, "status"));

	c->current = NULL;
	snprintf(c->row.status, sizeof(c->row.status), "%s", status ? status : "");
	if (c->row.deadline_ns != CONTEXT_TOLD) /* whoever reads it again should read why */
		c->row.deadline_ns = 0;
	c->killing = NULL;
	cell_over(x, take_end);
	cell_ref(x);
	keep(c, x);
	cell_tell(x);
	cell_unref(x);
	berth_release(c->berth);
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
		return err_set(e, ERR_CONFLICT, "context %s is dead: %.150s", c->row.id,
			       c->end.why ? c->end.why : c->end.cause);
	if (c->queued >= CONTEXT_QUEUE || c->queued_bytes + want->code_len > CONTEXT_QUEUED)
		return err_set(e, ERR_LIMIT, "context %s has %u cells waiting already", c->row.id,
			       c->queued);
	x = cell_new();
	buf_add(&x->run, want->code, want->code_len);
	x->env = json_incref(want->env);
	x->timeout_ms = want->timeout_ms;
	x->max_output = want->max_output ? want->max_output : CELL_OUTPUT;
	*out = cell_ref(x);
	if (c->state == CONTEXT_IDLE && !c->queue) {
		run_cell(c, x);
		return 0;
	}
	while (*at)
		at = &(*at)->next;
	*at = x;
	c->queued++;
	c->queued_bytes += x->run.len;
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
	struct run *r = context_run_of(c);

	if (c->state != CONTEXT_BUSY || !r)
		return 0;
	run_signal(r, SIGINT);
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
	struct run *r = context_run_of(c);

	if (!c->current || c->current->asked <= c->current->answered || !r)
		return err_set(e, ERR_CONFLICT, "no cell of context %s waits for input", c->row.id);
	talk_input(&line, c->current->number, text, n);
	c->row.answers = ++c->current->answered;
	c->row.said = run_say(r, line.p, line.len);
	context_write_row(c);
	return 0;
}
