/* box.c - see box.h: states of a box, waiting for them, and the table of boxes. */
#include "fleet/box_internal.h"
#include "fleet/box_secrets.h"
#include "base/cleanup.h"
#include "fleet/recent_exits.h"

#include <assert.h>
#include <string.h>

static const struct {
	const char *name;
	unsigned next;
} states[] = {
	[BOX_MAKING] = { "creating", 1u << BOX_RUNNING | 1u << BOX_STOPPED | 1u << BOX_PAUSED |
					     1u << BOX_ENDING },
	[BOX_RUNNING] = { "running", 1u << BOX_MAKING | 1u << BOX_STOPPED | 1u << BOX_PAUSED |
					     1u << BOX_ENDING },
	[BOX_STOPPED] = { "stopped", 1u << BOX_MAKING | 1u << BOX_RUNNING | 1u << BOX_ENDING },
	[BOX_PAUSED] = { "paused", 1u << BOX_RUNNING | 1u << BOX_MAKING | 1u << BOX_ENDING },
	[BOX_ENDING] = { "ending", 1u << BOX_DELETED },
	[BOX_DELETED] = { "deleted", 0 },
};
_Static_assert(ARRAY_LEN(states) == BOX_STATES, "a state without a row");

const char *box_state_name(enum box_state s)
{
	return states[s].name;
}

int box_state_follows(enum box_state now, enum box_state next)
{
	return states[now].next >> next & 1;
}

void box_set_state(struct box *b, enum box_state next)
{
	assert(box_state_follows(b->state, next));
	b->state = next;
	if (next == BOX_ENDING)
		b->fleet->ending++;
	else if (next == BOX_DELETED)
		b->fleet->ending--;
}

const char *box_keeper_id(const struct box *b)
{
	return b->row.keeper[0] ? b->row.keeper : b->row.id;
}

const char *fleet_keeper_id(const struct fleet *f, const char *id)
{
	const struct box *b = fleet_find(f, id);

	return b ? box_keeper_id(b) : id;
}

/* ---- waiting ---- */

void box_wait_for(struct box *b, struct box_wait **list, struct box_wait *w)
{
	w->box = b;
	w->next = *list;
	*list = w;
}

static int drop_wait(struct box_wait **list, struct box_wait *w)
{
	for (; *list; list = &(*list)->next)
		if (*list == w) {
			*list = w->next;
			return 1;
		}
	return 0;
}

void box_await(struct box *b, struct box_wait *w)
{
	box_wait_for(b, &b->made, w);
}

void box_wait_cancel(struct box_wait *w)
{
	if (w->box && !drop_wait(&w->box->made, w) && !drop_wait(&w->box->risen, w) &&
	    !drop_wait(&w->box->replaced, w))
		drop_wait(&w->box->ended, w);
	w->box = NULL;
}

void box_notify(struct box_wait **list, struct box *b, const struct err *e)
{
	while (*list) {
		struct box_wait *w = *list;

		*list = w->next;
		w->box = NULL;
		w->done(w, b, e);
	}
}

/* ---- the table ---- */

void box_enter(struct box *b)
{
	struct box **slot = &b->fleet->slots[id_hash(b->row.id) % FLEET_SLOTS];

	b->next = *slot;
	*slot = b;
	b->fleet->count++;
}

static int take_out(struct box **at, const struct box *b)
{
	for (; *at; at = &(*at)->next)
		if (*at == b) {
			*at = b->next;
			return 1;
		}
	return 0;
}

void box_leave(struct box *b)
{
	if (take_out(&b->fleet->making, b))
		return;
	if (take_out(&b->fleet->slots[id_hash(b->row.id) % FLEET_SLOTS], b))
		b->fleet->count--;
}

void box_free(struct box *b)
{
	box_leave(b);
	box_store_free(b);
	fleet_call_hooks(b->fleet, before_free, b);
	while (b->runs) {
		struct exec *r = b->runs;

		b->runs = r->next;
		exec_free(r);
	}
	recent_exits_free(b);
	box_replace_cancel(b);
	keeper_client_cancel(&b->fleet->keeper, b->asking);
	fleet_call_hooks(b->fleet, after_free, b);
	/* The end of a box may be known here before its connection closes; calls in progress must
	 * fail with it. */
	if (b->state == BOX_DELETED)
		init_conn_box_ended(&b->line);
	init_conn_close(&b->line);
	port_conns_fail(b);
	if (b->state == BOX_DELETED)
		box_secrets_ended(b);
	box_secrets_drop(b);
	egress_client_drop(b);
	timer_fini(&b->clock);
	store_box_fini(&b->row);
	free(b->mounts);
	free(b->layers);
	free(b->listening);
	free(b->stays_because);
	free(b);
}

struct box *box_new(struct fleet *f)
{
	struct box *b = calloc(1, sizeof(*b));

	if (!b)
		abort();
	b->fleet = f;
	b->line.post.fd = -1;
	timer_init(&b->clock, f->loop, box_clock_due);
	port_conns_init(&b->port_conns);
	return b;
}
