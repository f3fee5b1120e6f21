/* boxh_end.c - the end of a box: why, in the store before it is killed; then what the keeper counted. */
#include "fleet/box_internal.h"
#include "fleet/recent_exits.h"
#include "store/contexts.h"
#include "store/volumes.h"

#include <stdio.h>

enum { JUST_MS = 20 }; /* what a box can compute in this time without being charged for it */

/* Written before the kill: a front that dies in between leaves the reason to the next. */
void berth_intend(struct berth *b, enum cause because)
{
	struct store *s = b->fleet->store;
	struct err e;
	int grouped;

	if (b->intended)
		return;
	b->intended = 1;
	grouped = store_begin(s, &e) == 0;
	ledger_settle(&b->fleet->ledger); /* init, who could say it again, goes with the box */
	if (because != CAUSE_EXIT) {
		snprintf(b->row.cause, sizeof(b->row.cause), "%s", cause_name(because));
		/* A full disk must not keep a box alive. */
		(void)!store_box_intend(s, b->row.id, b->row.cause, &e);
	}
	if (grouped)
		(void)!store_commit(s, &e);
}

void berth_take_cause(struct berth *b, const char *name)
{
	if (b->because != CAUSE_EXIT || cause_parse(name, &b->because) < 0)
		return;
	b->because_ms = b->because == CAUSE_LIFETIME ? b->row.lifetime_ms :
			b->because == CAUSE_IDLE     ? b->row.idle_ms :
						       0;
}

/* Whoever began its end wrote why, and it may have been another front. 1: that one was first. */
static int is_buried(struct berth *b)
{
	struct store_box row = { 0 };
	struct err e;
	int gone;

	if (b->because != CAUSE_EXIT)
		return 0; /* we know why, and bury() finds out the rest */
	if (store_box_get(b->fleet->store, b->row.id, &row, &e) < 0)
		return 0;
	berth_take_cause(b, row.cause);
	gone = row.state == STORE_BOX_GONE;
	store_box_fini(&row);
	return gone;
}

/* It ended, and nobody had asked for it; kills for memory that some program died of before do not count. */
static enum cause own_end(const struct berth *b, const struct wire_counted *figures)
{
	if (!figures)
		return CAUSE_HOST;
	if (figures->by_operator == 1)
		return CAUSE_OPERATOR;
	if (figures->by_operator == WIRE_ENDED_BY_DEADLINE)
		return CAUSE_LIFETIME;
	if (figures->over_cpu == 1)
		return CAUSE_CPU;
	return figures->oom_kills != UINT64_MAX && figures->oom_kills > b->seen.oom_kills ?
		       CAUSE_MEMORY :
		       CAUSE_HOST;
}

static int write_end(struct berth *b, enum cause cause, struct fleet_news *news)
{
	struct fleet *f = b->fleet;
	struct err e;

	/* A full disk must not keep a dead box: its row is looked at again after a restart. */
	if (store_box_bury(f->store, b->row.id, cause_name(cause), fleet_now_ns(), &e) < 0 &&
	    e.kind == ERR_NOT_FOUND)
		return -1; /* the other front was faster */
	(void)!store_volume_detach(f->store, b->row.id, &e);
	(void)!store_context_drop(f->store, b->row.id, &e);
	fleet_write(f, b->row.team, b->row.id, "box.ended",
		    json_pack("{s:s}", "cause", cause_name(cause)), news);
	return 0;
}

static void bury(struct berth *b, enum cause cause)
{
	struct fleet *f = b->fleet;
	struct fleet_news news;
	struct err e;
	int grouped = store_begin(f->store, &e) == 0;
	int first = write_end(b, cause, &news) == 0;

	if (grouped)
		(void)!store_commit(f->store, &e);
	if (!first)
		return;
	f->figures.boxes_ended[cause]++;
	fleet_spread(f, &news);
}

void berth_finish(struct berth *b, const struct wire_counted *figures)
{
	int buried = is_buried(b);
	/* Nobody misses the box of a run that is over. */
	int missed = b->died && !(b->ephemeral && !b->runs);

	berth_become(b, BERTH_GONE);
	gate_close(b);
	timer_clear(&b->clock);
	if (figures)
		berth_count_cpu(b, figures);
	if (b->made || b->risen) {
		struct err gone;

		err_set(&gone, ERR_NOT_FOUND, "box %s has ended", b->row.id);
		berth_tell(&b->made, b, &gone);
		berth_tell(&b->risen, b, &gone);
	}
	for (struct run *r = b->runs, *next; r; r = next) {
		next = r->next;
		run_box_gone(r, figures);
	}
	if (!buried)
		bury(b, b->because == CAUSE_EXIT && missed ? own_end(b, figures) : b->because);
	berth_leave(b);
	berth_tell(&b->ended, b, NULL);
	berth_free(b);
}

static void berth_charge_cpu(struct berth *b, uint64_t us)
{
	const struct fleet_accounts *a = &b->fleet->accounts;

	if (a->computed && us)
		a->computed(a->ctx, b->row.team, us);
}

void berth_count_cpu(struct berth *b, const struct wire_counted *now)
{
	if (now->cpu_us == UINT64_MAX)
		return;
	if (b->is_charged && now->cpu_us > b->charged_us)
		berth_charge_cpu(b, now->cpu_us - b->charged_us);
	b->charged_us = now->cpu_us;
	b->is_charged = 1;
}

void berth_count_reaped(struct berth *b, uint64_t cpu_us)
{
	if (!b->charged_us) /* or the cgroup has told more than that already */
		berth_charge_cpu(b, cpu_us);
}

static void on_end(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct berth *b = ctx;

	(void)len;
	(void)fd;
	(void)e; /* it is gone already, which is what we want */
	b->asking = NULL;
	berth_finish(b, f ? (const struct wire_counted *)f : NULL);
}

static int was_just_counted(const struct berth *b)
{
	return b->is_charged && b->seen_ms && loop_now_ms() - b->seen_ms < JUST_MS;
}

void berth_end(struct berth *b, enum cause because, struct berth_wait *w)
{
	if (w)
		berth_wait_for(b, &b->ended, w);
	if (b->state >= BERTH_ENDING)
		return;
	if (b->state == BERTH_MAKING && !b->late) { /* on_made() looks at this */
		b->because = because;
		return;
	}
	if (b->state == BERTH_PAUSED && !init_conn_is_open(&b->line))
		berth_restore_runs(b); /* those of it that nobody asked for yet end, too */
	berth_become(b, BERTH_ENDING);
	b->because = because;
	berth_intend(b, because);
	berth_restored(b);
	timer_clear(&b->clock);
	keeper_client_cancel(&b->fleet->office, b->asking);
	/* The last figures explain how programs ended that end with it, or why it did; and say what was
	 * computed since the last time that the box was asked. */
	b->asking = keeper_client_request_box(&b->fleet->office, WIRE_KILL,
				   b->runs || because == CAUSE_EXIT || !was_just_counted(b) ? WIRE_KILL_FIGURES : 0,
				   b->row.id, WIRE_GONE, on_end, b);
}

/* Its init hung up: it died, and the box with it. */
void berth_line_gone(struct init_conn *l, const struct err *why)
{
	struct berth *b = l->user;

	(void)why;
	inlets_fail(b);
	if (b->state != BERTH_RUNNING && !berth_is_stored(b))
		return;
	b->died = 1;
	berth_end(b, CAUSE_EXIT, NULL);
}

/* Whoever was to end it after its run died with the old front. */
void berth_end_if_done(struct berth *b)
{
	if (b->ephemeral && b->fleet->alone && b->state == BERTH_RUNNING && !b->runs)
		berth_end(b, CAUSE_EXIT, NULL);
}

void berth_run_over(struct berth *b, struct run *r)
{
	struct run **at = &b->runs;

	while (*at && *at != r)
		at = &(*at)->next;
	if (*at)
		*at = r->next;
	b->nruns--;
	berth_touch(b);
	past_note(b, r);
	run_free(r);
	berth_end_if_done(b);
}
