/* box.c - see box.h: its states, who waits for them, and the table that berths are found in. */
#include "fleet/box_internal.h"
#include "base/cleanup.h"
#include "fleet/recent_exits.h"

#include <string.h>

static const struct {
	const char *name;
	unsigned next;
} states[] = {
	[BERTH_MAKING] = { "making", 1u << BERTH_RUNNING | 1u << BERTH_KEPT | 1u << BERTH_PAUSED |
					     1u << BERTH_ENDING },
	[BERTH_RUNNING] = { "running", 1u << BERTH_KEPT | 1u << BERTH_PAUSED | 1u << BERTH_ENDING },
	[BERTH_KEPT] = { "kept", 1u << BERTH_RUNNING | 1u << BERTH_ENDING },
	[BERTH_PAUSED] = { "paused", 1u << BERTH_RUNNING | 1u << BERTH_MAKING | 1u << BERTH_ENDING },
	[BERTH_ENDING] = { "ending", 1u << BERTH_GONE },
	[BERTH_GONE] = { "gone", 0 },
};
_Static_assert(ARRAY_LEN(states) == BERTH_STATES, "a state without a row");

const char *berth_state_name(enum berth_state s)
{
	return states[s].name;
}

void berth_become(struct berth *b, enum berth_state next)
{
	if (!(states[b->state].next >> next & 1))
		abort(); /* our bug */
	b->state = next;
	if (next == BERTH_ENDING)
		b->fleet->ending++;
	else if (next == BERTH_GONE)
		b->fleet->ending--;
}

/* ---- waiting ---- */

void berth_wait_for(struct berth *b, struct berth_wait **list, struct berth_wait *w)
{
	w->berth = b;
	w->next = *list;
	*list = w;
}

static int drop_wait(struct berth_wait **list, struct berth_wait *w)
{
	for (; *list; list = &(*list)->next)
		if (*list == w) {
			*list = w->next;
			return 1;
		}
	return 0;
}

void berth_await(struct berth *b, struct berth_wait *w)
{
	berth_wait_for(b, &b->made, w);
}

void berth_wait_cancel(struct berth_wait *w)
{
	if (w->berth && !drop_wait(&w->berth->made, w) && !drop_wait(&w->berth->risen, w))
		drop_wait(&w->berth->ended, w);
	w->berth = NULL;
}

void berth_tell(struct berth_wait **list, struct berth *b, const struct err *e)
{
	while (*list) {
		struct berth_wait *w = *list;

		*list = w->next;
		w->berth = NULL;
		w->done(w, b, e);
	}
}

/* ---- the table ---- */

void berth_enter(struct berth *b)
{
	struct berth **slot = &b->fleet->slots[id_hash(b->row.id) % FLEET_SLOTS];

	b->next = *slot;
	*slot = b;
	b->fleet->count++;
}

static int take_out(struct berth **at, const struct berth *b)
{
	for (; *at; at = &(*at)->next)
		if (*at == b) {
			*at = b->next;
			return 1;
		}
	return 0;
}

void berth_leave(struct berth *b)
{
	if (take_out(&b->fleet->making, b))
		return;
	if (take_out(&b->fleet->slots[id_hash(b->row.id) % FLEET_SLOTS], b))
		b->fleet->count--;
}

void berth_free(struct berth *b)
{
	berth_leave(b);
	fleet_call_hooks(b->fleet, before_free, b);
	while (b->runs) {
		struct run *r = b->runs;

		b->runs = r->next;
		run_free(r);
	}
	past_free(b);
	keeper_client_cancel(&b->fleet->office, b->asking);
	fleet_call_hooks(b->fleet, after_free, b);
	/* That it has ended can be known here before its line breaks; who still asks must hear of it. */
	if (b->state == BERTH_GONE)
		init_conn_box_ended(&b->line);
	init_conn_close(&b->line);
	inlets_fail(b);
	gate_drop(b);
	timer_fini(&b->clock);
	store_box_fini(&b->row);
	free(b->mounts);
	free(b->layers);
	free(b);
}

struct berth *berth_new(struct fleet *f)
{
	struct berth *b = calloc(1, sizeof(*b));

	if (!b)
		abort();
	b->fleet = f;
	b->line.post.fd = -1;
	timer_init(&b->clock, f->loop, berth_clock_due);
	inlets_init(&b->inlets);
	return b;
}
