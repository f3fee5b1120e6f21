/* context_restore.c - contexts that another front began: their rows, and the last cell again. */
#include "fleet/context_life.h"
#include "lang/driver.h"

#include <string.h>

/* A line that was cut in the middle cannot be finished: nobody has the rest of it. */
static void told(struct run *r)
{
	struct context *c = r->user;

	r->on_told = NULL;
	if (r->words_sent >= c->said_before)
		return;
	context_kill_driver(c);
	context_die(c, "lost", "the daemon ended while it was sending a cell", "restart it");
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
	c->state = CONTEXT_BUSY;
	berth_hold(c->berth);
}

static void restore(struct berth *b, struct store_context *take_row)
{
	struct context *c = context_add(b);
	struct run *r;

	c->row = *take_row;
	*take_row = (struct store_context){ 0 };
	memcpy(c->at, c->row.from, sizeof(c->at));
	c->said_before = c->row.said;
	if (c->row.began_ns)
		restore_cell(c);
	r = context_run_of(c);
	if (r) {
		r->user = c;
		r->on_told = told;
	}
	tap_open_channel(&c->tap, b->fleet, b->row.id, c->row.run, c->row.ref, c->at, &context_tap_on);
	c->tapped = 1;
	if (c->state != CONTEXT_BUSY || !c->row.status[0]) /* one that is over has all the time there is */
		context_set_clock(c);
}

void contexts_restore(struct berth *b)
{
	struct store_contexts rows = { 0 };
	struct err e;

	if (store_context_list(b->fleet->store, b->row.id, &rows, &e) < 0)
		return;
	for (unsigned i = 0; i < rows.n; i++)
		if (driver_of(rows.v[i].language) && !context_find(b, rows.v[i].id))
			restore(b, &rows.v[i]);
	store_contexts_fini(&rows);
}
