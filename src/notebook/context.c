/* context.c - see context.h.
 *
 *   client       context                         driver
 *   code    -->  {"op":"run","id":"7"}      -->  runs it
 *                row: cell 7 begins at these bytes of its three streams
 *           <--  stdout, stderr             <--  prints
 *           <--  result, error, input       <--  channel
 *           <--  end                        <--  {"ev":"end","id":"7"}
 *
 * The row is written while the driver works, and again after the end was sent to the client: no
 * client waits for a write of the store. If the server ends between the two lines, the next one
 * receives events of a cell without a row, and adopts the cell. */
#include "notebook/context_internal.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "record/record.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	unsigned next;
} states[] = {
	[CONTEXT_STARTING] = { "starting", 1u << CONTEXT_IDLE | 1u << CONTEXT_DEAD },
	[CONTEXT_IDLE] = { "idle",
			   1u << CONTEXT_BUSY | 1u << CONTEXT_DEAD | 1u << CONTEXT_STARTING },
	[CONTEXT_BUSY] = { "busy",
			   1u << CONTEXT_IDLE | 1u << CONTEXT_DEAD | 1u << CONTEXT_STARTING },
	[CONTEXT_DEAD] = { "dead", 1u << CONTEXT_STARTING },
};
_Static_assert(ARRAY_LEN(states) == CONTEXT_STATES, "a state without a row");

const char *context_state_name(enum context_state s)
{
	return states[s].name;
}

void context_become(struct context *c, enum context_state next)
{
	if (!(states[c->state].next >> next & 1))
		abort(); /* our bug */
	c->state = next;
}

struct exec *context_run_of(const struct context *c)
{
	return exec_lookup(c->box, c->row.run);
}

void context_write_row(struct context *c)
{
	struct err e;

	/* A row that could not be written is missing only after a crash. */
	if (store_context_update(c->box->fleet->store, &c->row, &e) < 0 && e.kind != ERR_NOT_FOUND)
		log_error("context row lost", LOG_S("context", c->row.id), LOG_S("error", e.msg));
}

/* ---- requests that wait for it ---- */

void context_await(struct context *c, struct context_wait *w)
{
	w->context = c;
	w->next = c->waiters;
	c->waiters = w;
}

void context_wait_cancel(struct context_wait *w)
{
	if (!w->context)
		return;
	for (struct context_wait **at = &w->context->waiters; *at; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			break;
		}
	w->context = NULL;
}

void context_tell_waiters(struct context *c)
{
	while (c->waiters) {
		struct context_wait *w = c->waiters;

		c->waiters = w->next;
		w->context = NULL;
		w->done(w, c);
	}
}

/* ---- time ---- */

void context_set_clock(struct context *c)
{
	int64_t left = c->row.deadline_ns - fleet_now_ns();

	if (c->state == CONTEXT_STARTING)
		timer_set(&c->clock, isolation_is_emulated(&c->box->row) ? CONTEXT_EMULATED_MS
									 : CONTEXT_READY_MS);
	else if (c->state != CONTEXT_BUSY || !c->row.deadline_ns)
		timer_clear(&c->clock);
	else if (c->interrupted)
		timer_set(&c->clock, CONTEXT_GRACE_MS);
	else
		timer_set(&c->clock, left > 0 ? (uint64_t)left / 1000000 + 1 : 0);
}

static void clock_due(struct timer *t)
{
	struct context *c = loop_owner(t, struct context, clock);
	struct exec *r = context_run_of(c);

	if (c->box->state == BOX_PAUSED)
		return; /* the box is paused: contexts_resume() sets the timer again */
	if (c->state == CONTEXT_STARTING) {
		context_kill_driver(c);
		context_die(c, "slow", "its driver did not get ready in time",
			    "try again, with more cpu");
	} else if (c->state == CONTEXT_BUSY && !c->interrupted) {
		c->interrupted = 1;
		if (r)
			exec_send_signal(r, SIGINT);
		c->row.deadline_ns = CONTEXT_TOLD;
		context_write_row(c);
		context_set_clock(c);
	} else if (c->state == CONTEXT_BUSY) {
		c->killing = "timeout";
		context_kill_driver(c); /* the end of the driver does the rest */
	}
}

static void contexts_resume(struct box *b)
{
	for (struct context *c = b->contexts; c && b->paused_ns > 0; c = c->next) {
		if (c->row.deadline_ns > 0)
			c->row.deadline_ns += b->paused_ns;
		context_set_clock(c);
	}
	b->paused_ns = 0;
}

static void contexts_move(struct box *b, int64_t by_ns)
{
	for (struct context *c = b->contexts; c; c = c->next)
		if (c->row.deadline_ns > 0)
			c->row.deadline_ns += by_ns;
}

/* ---- those of a box ---- */

struct context *context_add(struct box *b)
{
	struct context *c = calloc(1, sizeof(*c));
	struct context **at = &b->contexts;

	if (!c)
		abort();
	c->box = b;
	timer_init(&c->clock, b->fleet->loop, clock_due);
	while (*at)
		at = &(*at)->next;
	*at = c;
	b->ncontexts++;
	return c;
}

void context_free(struct context *c)
{
	context_hang_up(c);
	for (struct context **at = &c->box->contexts; *at; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			break;
		}
	c->box->ncontexts--;
	timer_fini(&c->clock);
	while (c->kept) {
		struct cell *x = c->kept;

		c->kept = x->next;
		cell_unref(x);
	}
	while (c->queue) {
		struct cell *x = c->queue;

		c->queue = x->next;
		cell_unref(x);
	}
	cell_unref(c->current);
	while (c->waiters)
		context_wait_cancel(c->waiters);
	driver_msg_fini(&c->talk);
	buf_fini(&c->early_stderr);
	store_context_fini(&c->row);
	free(c->end.why);
	free(c->end.hint);
	free(c);
}

static void contexts_free(struct box *b)
{
	while (b->contexts)
		context_free(b->contexts);
}

struct context *context_find(const struct box *b, const char *id)
{
	struct context *c = b->contexts;

	while (c && strcmp(c->row.id, id) != 0)
		c = c->next;
	return c;
}

struct context *context_standing(const struct box *b, const char *language)
{
	struct context *c = b->contexts;

	while (c && !(c->row.standing && !strcmp(c->row.language, language)))
		c = c->next;
	return c;
}

json_t *context_json(const struct context *c)
{
	json_t *doc =
		json_pack("{s:s, s:s, s:s, s:s, s:b, s:s, s:s, s:I, s:i, s:s}", "id", c->row.id,
			  "box", c->row.box, "language", c->row.language, "state",
			  states[c->state].name, "default", c->row.standing, "cwd",
			  *c->row.cwd ? c->row.cwd : "/home/user", "version", c->version, "cells",
			  (json_int_t)c->row.cell, "waiting", (int)c->queued, "exec", c->row.run);

	json_object_set_new(doc, "created", json_time((uint64_t)c->row.created_ns));
	json_object_set_new(doc, "cell",
			    c->current ? json_integer((json_int_t)c->current->number)
				       : json_null());
	if (c->state == CONTEXT_DEAD)
		json_object_set_new(doc, "end",
				    json_pack("{s:s, s:s?, s:s?}", "cause", c->end.cause, "message",
					      c->end.why, "hint", c->end.hint));
	return doc;
}

static void contexts_on_restored(struct box *b)
{
	contexts_restore(b);
	contexts_resume(b);
}

static void contexts_on_resynced(struct box *b)
{
	contexts_restore(b);
	contexts_catch_up(b);
}

const struct box_hooks notebook_hooks = {
	.restored = contexts_on_restored,
	.resynced = contexts_on_resynced,
	.resumed = contexts_resume,
	.clock_moved = contexts_move,
	.before_free = contexts_free,
};
