/* context_restore.c - contexts that another server started: reads their rows, and the last cell
 * again. */
#include "notebook/context_internal.h"
#include "lang/driver.h"

#include <string.h>

#define CELL_DROPPED "dropped" /* status of a cell that was never run */

static void drop_cell(struct context *c)
{
	context_become(c, CONTEXT_IDLE);
	context_end_cell(
		c, json_pack("{s:s, s:s, s:s, s:s}", "status", CELL_DROPPED, "cause", "lost",
			     "message",
			     "the server ended while it was sending the cell, which was not run",
			     "hint", "send it again: the context has kept its state"));
}

/* The server that was sending a cell, or an answer to its question, ended in the middle of the
 * line, and the rest is lost. A newline makes the driver skip the part that it has received. The
 * cell was not run: its clients get that error, and the context keeps its state. */
static void drop_cut_line(struct context *c, struct exec *r, uint64_t missing)
{
	c->row.said = exec_channel_send(r, "\n", 1);
	if (missing == 1) { /* only the newline was missing */
		context_write_row(c);
		return;
	}
	if (c->row.answers) { /* the answer is requested again */
		c->row.answers--;
		c->current->answered--;
		context_write_row(c);
		return;
	}
	drop_cell(c);
	context_set_clock(c);
	context_next_cell(c);
}

/* The server was killed after it had sent a cell, or a part of it, and before it could write the
 * row. The newline ends a part; after a whole line it is an empty one, which drivers skip. */
static void skip_unknown_line(struct context *c, struct exec *r)
{
	c->skip_number = 1;
	c->row.said = exec_channel_send(r, "\n", 1);
	context_write_row(c);
}

void context_told(struct exec *r)
{
	struct context *c = r->user;
	uint64_t before = c->said_before;

	/* The other server may be in the middle of it: contexts_catch_up() calls this again. */
	if (before && c->box->fleet->alone) {
		c->said_before = 0;
		if (r->words_sent > before)
			skip_unknown_line(c, r);
		else if (r->words_sent < before && c->current && !c->row.status[0])
			drop_cut_line(c, r, before - r->words_sent);
	}
	/* Bytes that were sent before the count was known were stored with a wrong count. */
	if (c->current && r->words.len > r->words_taken && c->row.said != exec_on_output(r)) {
		c->row.said = exec_on_output(r);
		context_write_row(c);
	}
	context_next_cell(c);
}

/* The last cell, running or not, as it will be read again. */
static void restore_cell(struct context *c)
{
	struct cell *x = cell_new();

	x->state = CELL_RUNNING;
	x->number = c->row.cell;
	x->began_ns = c->row.began_ns;
	x->max_output = c->row.max_output ? c->row.max_output : CELL_OUTPUT;
	x->answered = c->row.answers;
	memcpy(x->from, c->row.from, sizeof(x->from));
	c->current = x;
	c->foreign = 1;
	c->state = CONTEXT_BUSY;
	box_hold(c->box);
}

static void context_do_restore(struct box *b, struct store_context *take_row)
{
	struct context *c = context_add(b);
	struct exec *r;

	c->row = *take_row;
	*take_row = (struct store_context){ 0 };
	memcpy(c->at, c->row.from, sizeof(c->at));
	c->line_at = c->at[2];
	c->said_before = c->row.said;
	if (c->row.began_ns)
		restore_cell(c);
	if (c->current && !strcmp(c->row.status, CELL_DROPPED))
		drop_cell(c); /* the driver will not report its end: it never got the cell */
	r = context_run_of(c);
	if (r) {
		r->user = c;
		r->on_told = context_told;
	}
	exec_reader_open_channel(&c->reader, b->fleet, b->row.id, c->row.run, c->row.ref, c->at,
				 &context_reader_on);
	c->tapped = 1;
	if (c->state != CONTEXT_BUSY ||
	    !c->row.status[0]) /* a cell that has ended has no deadline */
		context_set_clock(c);
}

void contexts_restore(struct box *b)
{
	struct store_contexts rows = { 0 };
	struct err e;

	if (store_context_list(b->fleet->store, b->row.id, &rows, &e) < 0)
		return;
	for (unsigned i = 0; i < rows.n; i++)
		if (driver_of(rows.v[i].language) && !context_find(b, rows.v[i].id))
			context_do_restore(b, &rows.v[i]);
	store_contexts_fini(&rows);
}

/* ---- two servers at once ---- */

static void take_cell(struct context *c, const struct store_context *row)
{
	struct cell *x = cell_new();

	x->state = CELL_RUNNING;
	x->number = row->cell;
	x->began_ns = row->began_ns;
	x->max_output = row->max_output ? row->max_output : CELL_OUTPUT;
	x->answered = row->answers;
	memcpy(x->from, c->at, sizeof(x->from)); /* earlier bytes were read without a cell */
	c->current = x;
	c->row.cell = row->cell;
	memcpy(c->row.status, row->status, sizeof(c->row.status));
	memcpy(c->row.from, row->from, sizeof(c->row.from));
	c->row.answers = row->answers;
	c->row.said = row->said;
	c->row.began_ns = row->began_ns;
	c->row.deadline_ns = row->deadline_ns;
	c->row.max_output = row->max_output;
	c->foreign = 1;
	c->said_before = row->status[0] ? 0 : row->said;
	context_become(c, CONTEXT_BUSY);
	box_hold(c->box);
	context_set_clock(c);
}

void context_sync(struct context *c)
{
	struct store_context row = { 0 };
	struct err e;

	if (c->state != CONTEXT_IDLE ||
	    store_context_get(c->box->fleet->store, c->row.id, &row, &e) < 0)
		return;
	if (row.cell > c->row.cell && strcmp(row.run, c->row.run) == 0) {
		/* A cell that has ended there must still be read here, up to its end; one that
		 * never ran has no output. */
		if (!row.began_ns || !strcmp(row.status, CELL_DROPPED))
			c->row.cell = row.cell;
		else
			take_cell(c, &row);
	}
	store_context_fini(&row);
}

/* The other server may have sent more since its row was read: more of the same cell, or others. */
static void count_again(struct context *c)
{
	struct store_context row = { 0 };
	struct err e;

	if ((c->current && !c->foreign) ||
	    store_context_get(c->box->fleet->store, c->row.id, &row, &e) < 0)
		return;
	if (row.cell == c->row.cell && strcmp(row.run, c->row.run) == 0)
		c->said_before = c->row.said = row.said;
	else if (row.cell < c->row.cell)
		c->said_before = 0; /* its events were read, so the driver has got all of it */
	store_context_fini(&row);
}

void contexts_catch_up(struct box *b)
{
	for (struct context *c = b->contexts; c; c = c->next) {
		struct exec *r = context_run_of(c);

		context_sync(c);
		count_again(c);
		if (!r || !c->said_before)
			continue;
		exec_input_count(r);
	}
}
