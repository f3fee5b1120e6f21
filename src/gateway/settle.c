/* settle.c - see settle.h. */
#include "gateway/settle.h"
#include "gateway/gateway.h"
#include "gateway/restart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settle_slot *settle_slots_new(void)
{
	struct settle_slot *all = calloc(SETTLE_SLOTS, sizeof(*all));

	if (!all)
		abort();
	return all;
}

static struct settle_slot *settle_slot(struct gateway *g, const char *team, unsigned node)
{
	char text[STORE_NAME + 16];

	snprintf(text, sizeof(text), "%u %s", node, team);
	return &g->settles[control_hash(text) % SETTLE_SLOTS];
}

void settle_note(struct gateway *g, const char *team, unsigned node)
{
	struct settle_slot *at = settle_slot(g, team, node);

	at->node = node;
	at->ms = (uint32_t)loop_now_ms();
	snprintf(at->team, sizeof(at->team), "%s", team);
}

static void settle_add(struct settle *s, unsigned node)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->v[i] == node)
			return;
	if (s->n < SETTLE_NODES)
		s->v[s->n++] = node;
}

static const char *settle_target(void *user, unsigned node)
{
	const struct settle *s = user;

	for (unsigned i = 0; i < s->n; i++)
		if (s->v[i] == node)
			return "/cluster/rows";
	return NULL;
}

void settle_end(struct settle *s)
{
	if (!s->is_active)
		return;
	s->is_active = 0;
	directory_wait_cancel(&s->own);
	timer_fini(&s->late);
	if (s->n)
		fanout_free(&s->fanout);
}

static void settle_look(struct settle *s)
{
	if (s->is_waiting || !s->nodes_done)
		return;
	settle_end(s);
	s->done(s);
}

static void settle_nodes_done(struct fanout *f)
{
	struct settle *s = f->user;

	s->nodes_done = 1;
	settle_look(s);
}

static void settle_own_done(struct directory_wait *w)
{
	struct settle *s = loop_owner(w, struct settle, own);

	s->is_waiting = 0;
	settle_look(s);
}

static void settle_late(struct timer *t)
{
	settle_own_done(&loop_owner(t, struct settle, late)->own);
}

int settle_begin(struct settle *s, struct gateway *g, const char *team)
{
	uint32_t now = (uint32_t)loop_now_ms();
	struct api *a = g->api;
	char identity[128];

	s->gateway = g;
	for (unsigned i = 0; i < SETTLE_SLOTS; i++) {
		const struct settle_slot *at = &g->settles[i];

		if (at->node && now - at->ms < SETTLE_RECENT_MS &&
		    (!team || strcmp(at->team, team) == 0))
			settle_add(s, at->node);
	}
	s->own = (struct directory_wait){ .done = settle_own_done };
	s->is_waiting = a->rows && a->rows_settle(a->rows, &s->own) == 0;
	if (!s->n && !s->is_waiting)
		return 1;
	s->is_active = 1;
	s->nodes_done = !s->n;
	timer_init(&s->late, a->loop, settle_late);
	timer_set(&s->late, SETTLE_LATE_MS);
	if (!s->n)
		return 0;
	restart_identity(TEAM_DEFAULT, identity);
	s->fanout = (struct fanout){ .done = settle_nodes_done,
				     .user = s,
				     .timeout_ms = SETTLE_LATE_MS };
	fanout_begin(&s->fanout, g->tunnels, a->loop, settle_target, identity);
	return 0;
}
