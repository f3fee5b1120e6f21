/* port_conn.c - see port_conn.h. */
#include "fleet/port_conn.h"
#include "base/cleanup.h"
#include "fleet/box.h"

#include <assert.h>
#include <errno.h>

enum { ANSWER_MS = 10000 }; /* init has 5 s itself, for a server whose queue is full */

/* Together about a second: what a server needs from its start to listen(). */
static const uint16_t rests_ms[] = { 30, 70, 150, 300, 450 };
static_assert(ARRAY_LEN(rests_ms) == INLET_TRIES - 1, "a rest between two tries");

static void next_one(struct berth *b);

void inlets_init(struct inlets *all)
{
	*all = (struct inlets){ .end = &all->first };
}

static void append(struct inlets *all, struct inlet *x)
{
	x->next = NULL;
	x->at = all->end;
	*all->end = x;
	all->end = &x->next;
	all->n++;
}

static void take_out(struct inlets *all, struct inlet *x)
{
	*x->at = x->next;
	if (x->next)
		x->next->at = x->at;
	else
		all->end = x->at;
	x->at = NULL;
	all->n--;
}

static void stop_asking(struct inlet *x)
{
	if (x->state != INLET_ASKS)
		return;
	init_conn_remove_call(&x->ask);
	x->berth->inlets.asking--;
	x->state = INLET_WAITS;
}

static void leave(struct inlet *x)
{
	stop_asking(x);
	take_out(&x->berth->inlets, x);
	timer_fini(&x->clock);
}

static void finish(struct inlet *x, int take_fd, const struct err *e)
{
	struct berth *b = x->berth;

	leave(x);
	next_one(b);
	x->done(x, take_fd, e);
}

static void fail(struct inlet *x, enum err_kind kind, const char *why)
{
	struct err e;

	err_set(&e, kind, "%s", why);
	finish(x, -1, &e);
}

/* ---- init says ---- */

static void connected(struct init_call *l, const struct frame *f, size_t len, int *fd)
{
	struct inlet *x = loop_owner(l, struct inlet, ask);

	(void)len;
	if (f->type == WIRE_FD && *fd >= 0)
		finish(x, steal_fd(fd), NULL);
	else
		fail(x, ERR_INVALID, "the box answered something else");
}

static void refused(struct init_call *l, const struct err *e)
{
	struct inlet *x = loop_owner(l, struct inlet, ask);
	struct berth *b = x->berth;
	/* Its init is busy with connections of somebody else's: that is no try. */
	int busy = e->kind == ERR_LIMIT;

	if ((e->sys != ECONNREFUSED && !busy) || (!busy && x->tries + 1 >= INLET_TRIES)) {
		finish(x, -1, e);
		return;
	}
	stop_asking(x);
	x->state = INLET_RESTS;
	timer_set(&x->clock, busy ? rests_ms[0] : rests_ms[x->tries++]);
	next_one(b);
}

static void lost(struct init_call *l)
{
	fail(loop_owner(l, struct inlet, ask), ERR_NOT_FOUND, "the box has ended");
}

/* ---- one after the other ---- */

static void ask(struct inlet *x)
{
	static const struct init_call_ops on = { .answer = connected,
						 .refused = refused,
						 .lost = lost };

	x->state = INLET_ASKS;
	x->berth->inlets.asking++;
	timer_set(&x->clock, ANSWER_MS);
	init_conn_request_port(&x->berth->line, &x->ask, &on, WIRE_CONNECT, x->port);
}

static void next_one(struct berth *b)
{
	struct inlets *all = &b->inlets;

	for (struct inlet *x = all->first; x && all->asking < INLET_ASKING; x = x->next)
		if (x->state == INLET_WAITS && init_conn_is_open(&b->line))
			ask(x);
}

static void due(struct timer *t)
{
	struct inlet *x = loop_owner(t, struct inlet, clock);
	struct berth *b = x->berth;

	if (b->state != BERTH_RUNNING || !init_conn_is_open(&b->line)) {
		fail(x, ERR_NOT_FOUND, "the box has ended");
	} else if (x->state == INLET_RESTS) {
		take_out(&b->inlets, x);
		append(&b->inlets, x);
		x->state = INLET_WAITS;
		timer_set(&x->clock, ANSWER_MS);
		next_one(b);
	} else {
		fail(x, ERR_LIMIT, "the box does not answer");
	}
}

int inlet_open(struct inlet *x, struct berth *b, uint16_t port, struct err *e)
{
	if (b->inlets.n >= INLET_MOST)
		return err_set(e, ERR_LIMIT, "%u connections to this box are being made",
			       b->inlets.n);
	if (!init_conn_is_open(&b->line))
		return err_set(e, ERR_NOT_FOUND, "the box cannot be reached");
	*x = (struct inlet){ .berth = b, .port = port, .done = x->done };
	timer_init(&x->clock, b->fleet->loop, due);
	timer_set(&x->clock, ANSWER_MS);
	append(&b->inlets, x);
	next_one(b);
	return 0;
}

void inlet_cancel(struct inlet *x)
{
	struct berth *b = x->berth;

	if (!x->at)
		return;
	leave(x);
	next_one(b);
}

void inlets_fail(struct berth *b)
{
	while (b->inlets.first)
		fail(b->inlets.first, ERR_NOT_FOUND, "the box has ended");
}
