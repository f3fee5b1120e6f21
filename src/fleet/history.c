/* history.c - see history.h. */
#include "fleet/history.h"
#include "base/clock.h"
#include "base/log.h"
#include "fleet/fleet.h"

#define HOUR_MS UINT64_C(3600000)

static uint64_t history_interval_ms(const struct history *h)
{
	uint64_t least = h->fleet->conf.history_least_ms,
		 keep = least && (!h->keep_ms || least < h->keep_ms) ? least : h->keep_ms,
		 ms = keep ? keep / 10 : HOUR_MS;

	return ms > HOUR_MS ? HOUR_MS : ms < 500 ? 500 : ms;
}

static int history_is_due(struct history *h)
{
	h->added += store_history_added(h->fleet->store);
	return loop_now_ms() - h->last_ms >= history_interval_ms(h) ||
	       (h->team_bytes && h->added > h->team_bytes / 8);
}

static void history_end_sweep(struct history *h)
{
	const struct store_history *s = &h->sweep;

	h->sweeping = 0;
	h->fleet->figures.history_rows +=
		s->runs + s->boxes + s->keys + s->sessions + s->audit_rows + s->receipts;
	if (s->runs || s->boxes || s->keys || s->sessions || s->audit_rows || s->receipts ||
	    s->pages)
		log_info("removed old rows", LOG_U("runs", s->runs), LOG_U("boxes", s->boxes),
			 LOG_U("keys", s->keys), LOG_U("sessions", s->sessions),
			 LOG_U("audit", s->audit_rows), LOG_U("receipts", s->receipts),
			 LOG_U("pages", s->pages));
}

/* A plan may keep the records of its teams for another time. */
static uint64_t history_keep_of(void *ctx, const char *team, uint64_t keep_ns)
{
	return fleet_keep_ms(ctx, team, FLEET_KEEP_RECORDS, keep_ns / 1000000) * 1000000;
}

static void history_work(struct history *h)
{
	uint64_t until = now_ns() + HISTORY_TURN_US * UINT64_C(1000);
	struct err e;
	int rc = 1;

	while (rc > 0 && now_ns() < until)
		rc = store_history_step(h->fleet->store, &h->sweep, &e);
	if (rc < 0)
		log_warn("old rows are not removed; the next sweep tries again", LOG_E(&e));
	if (rc <= 0)
		history_end_sweep(h);
}

static void history_due(struct timer *t)
{
	struct history *h = loop_owner(t, struct history, timer);
	uint64_t look =
		history_interval_ms(h) < HISTORY_LOOK_MS ? history_interval_ms(h) : HISTORY_LOOK_MS;

	/* During an upgrade the other server may still read these rows, and it sweeps as well. */
	if (!h->fleet->alone || !h->fleet->store) /* a fleet without a store keeps no history */
		h->sweeping = 0;
	else if (!h->sweeping && history_is_due(h)) {
		h->sweeping = 1;
		h->added = 0;
		h->last_ms = loop_now_ms();
		h->sweep = (struct store_history){ .now_ns = fleet_now_ns(),
						   .keep_ns = h->keep_ms * 1000000,
						   .keep_of = history_keep_of,
						   .ctx = h->fleet,
						   .team_bytes = h->team_bytes };
	}
	if (h->sweeping)
		history_work(h);
	timer_set(t, h->sweeping ? HISTORY_PAUSE_MS : look);
}

void history_init(struct history *h, struct fleet *f, uint64_t keep_ms, uint64_t team_bytes)
{
	/* last_ms 0: the first call sweeps, for a daemon that never runs for an hour. */
	*h = (struct history){ .fleet = f, .keep_ms = keep_ms, .team_bytes = team_bytes };
	timer_init(&h->timer, f->loop, history_due);
	timer_set(&h->timer, HISTORY_LOOK_MS < history_interval_ms(h) ? HISTORY_LOOK_MS
								      : history_interval_ms(h));
}

void history_fini(struct history *h)
{
	timer_fini(&h->timer);
}
