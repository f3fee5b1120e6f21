/* tick.c - one tick from its time to its end; see schedule.h. */
#include "base/log.h"
#include "schedule/civil.h"
#include "schedule/schedule_internal.h"
#include "schedule/zone.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_S INT64_C(1000000000)
#define NS_MS INT64_C(1000000)

enum {
	MISSED_COUNTED =
		10000,   /* missed ticks are counted up to here; then only those of one week */
	TRIM_EVERY = 64, /* ticks */
};
#define RECENT_NS (7 * INT64_C(86400) * NS_S)
#define LOG_EVERY_NS (60 * NS_S)

/* ---- the list of live ticks, in the order in which they start ---- */

struct live_tick *tick_append(struct schedule *s, const struct store_tick *row)
{
	struct live_tick *t = calloc(1, sizeof(*t)), **at = &s->ticks;

	if (!t)
		abort();
	t->row = *row;
	while (*at)
		at = &(*at)->next;
	*at = t;
	return t;
}

static void tick_remove(struct schedule *s, struct live_tick *t)
{
	struct live_tick **at = &s->ticks;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	free(t);
}

void tick_free_all(struct schedule *s)
{
	while (s->ticks)
		tick_remove(s, s->ticks);
}

static unsigned tick_count(const struct schedule *s)
{
	unsigned n = 0;

	for (const struct live_tick *t = s->ticks; t; t = t->next)
		n++;
	return n;
}

static int tick_is_started(const struct live_tick *t)
{
	return t->row.state == TICK_STARTING || t->row.state == TICK_RUNNING;
}

/* ---- rows ---- */

static void tick_store_failed(struct schedule *s, const struct err *e)
{
	int64_t now = schedules_now(s->all);

	if (!s->all->logged_ns || now - s->all->logged_ns >= LOG_EVERY_NS ||
	    now < s->all->logged_ns) { /* on a full disk this happens to all, every second */
		s->all->logged_ns = now;
		log_error("ticks cannot be written; trying again", LOG_S("schedule", s->row.id),
			  LOG_S("error", e->msg));
	}
	s->retry_ns = now + NS_S;
}

static int tick_put(struct schedule *s, const struct live_tick *t)
{
	struct err e;

	if (store_tick_put(s->all->store, &t->row, &e) == 0)
		return 0;
	tick_store_failed(s, &e);
	return -1;
}

/* The tick and the progress of the schedule, in one transaction. *out_new 0: the tick has a row, because
 * the clock was set back. */
static int tick_insert(struct schedule *s, const struct store_tick *t, int64_t decided_ns,
		       int *out_new)
{
	struct store *store = s->all->store;
	struct err e;

	*out_new = 1;
	if (store_begin(store, &e) < 0) {
		tick_store_failed(s, &e);
		return -1;
	}
	if (store_tick_add(store, t, &e) < 0) {
		*out_new = 0;
		if (e.kind != ERR_CONFLICT) {
			(void)!store_rollback(store);
			tick_store_failed(s, &e);
			return -1;
		}
	}
	if (store_schedule_decide(store, s->row.id, decided_ns, &e) < 0) {
		(void)!store_rollback(store);
		tick_store_failed(s, &e);
		return -1;
	}
	if (store_commit(store, &e) < 0) {
		tick_store_failed(s, &e);
		return -1;
	}
	s->row.decided_ns = decided_ns;
	schedule_set_next(s);
	if (++s->decided % TRIM_EVERY == 0 &&
	    store_tick_trim(store, s->row.id, SCHEDULE_HISTORY, &e) < 0)
		log_warn("old ticks could not be removed", LOG_S("schedule", s->row.id),
			 LOG_S("error", e.msg));
	return 0;
}

static struct store_tick tick_new(const struct schedule *s, int64_t at_ns, int64_t due_ns)
{
	struct store_tick t = { .at_ns = at_ns, .due_ns = due_ns, .state = TICK_WAITING };

	memcpy(t.schedule, s->row.id, sizeof(t.schedule));
	return t;
}

/* ---- ends ---- */

static void tick_finish(struct schedule *s, struct live_tick *t, enum store_tick_state state,
			const char *detail)
{
	static const char *const events[TICK_STATES] = {
		[TICK_SUCCEEDED] = "schedule.succeeded", [TICK_FAILED] = "schedule.failed",
		[TICK_SKIPPED] = "schedule.skipped",     [TICK_MISSED] = "schedule.missed",
		[TICK_REPLACED] = "schedule.replaced",
	};
	struct store_tick before = t->row;

	t->row.state = state;
	t->row.ended_ns = schedules_now(s->all);
	snprintf(t->row.detail, sizeof(t->row.detail), "%s", detail ? detail : "");
	if (tick_put(s, t) < 0) {
		t->row = before; /* it is looked at again */
		return;
	}
	schedule_emit(s, events[state], &t->row);
	tick_remove(s, t);
}

static void tick_stop(struct schedule *s, struct live_tick *t, enum live_stop why)
{
	t->stopping = why;
	s->all->runner.stop(s->all->runner.ctx, &s->row, &t->row);
}

void tick_stop_overdue(struct schedule *s, int64_t now_ns)
{
	struct live_tick *t = s->ticks;
	int64_t limit = (int64_t)s->settings.timeout_ms * NS_MS;

	if (!t || !tick_is_started(t))
		return;
	if (t->stopping || (limit && now_ns - t->row.due_ns >= limit))
		tick_stop(s, t, t->stopping ? t->stopping : STOP_TIMEOUT);
}

static void tick_failed(struct schedule *s, struct live_tick *t, const char *why)
{
	char detail[STORE_REASON + 1];

	if (t->stopping == STOP_REPLACED) {
		tick_finish(s, t, TICK_REPLACED, "the next tick was due");
		return;
	}
	if (t->stopping == STOP_TIMEOUT)
		why = "the time limit of the schedule was reached";
	snprintf(detail, sizeof(detail), "%.220s", why);
	if (t->row.attempt > s->settings.retries || s->row.state == SCHEDULE_PAUSED) {
		tick_finish(s, t, TICK_FAILED, detail);
		return;
	}
	t->stopping = STOP_NONE;
	t->row.state = TICK_WAITING;
	t->row.due_ns = schedules_now(s->all) +
			(int64_t)schedule_retry_ms(&s->settings, t->row.attempt) * NS_MS;
	snprintf(t->row.detail, sizeof(t->row.detail), "attempt %u: %.200s", t->row.attempt, why);
	(void)!tick_put(s, t); /* after a crash the row is looked at again, with the same result */
}

void tick_refused(struct schedule *s, struct live_tick *t, const char *run, const char *why)
{
	snprintf(t->row.run, sizeof(t->row.run), "%s", run);
	tick_failed(s, t, why);
}

void tick_look(struct schedule *s, struct live_tick *t, int after_restart)
{
	char why[STORE_REASON + 1] = "";

	switch (s->all->runner.find(s->all->runner.ctx, &s->row, &t->row, why)) {
	case FOUND_NOTHING:
		if (t->row.state == TICK_RUNNING) {
			tick_failed(s, t, "the record of what it started no longer exists");
		} else if (after_restart) {
			t->row.state =
				TICK_WAITING; /* the request was lost before it had any effect */
			(void)!tick_put(s, t);
		}
		break;
	case FOUND_RUNNING:
		if (t->row.state == TICK_RUNNING)
			break;
		t->row.state = TICK_RUNNING;
		(void)!tick_put(s, t);
		break;
	case FOUND_SUCCEEDED:
		tick_finish(s, t, TICK_SUCCEEDED, "");
		break;
	case FOUND_FAILED:
		tick_failed(s, t, why);
		break;
	}
}

/* ---- starting ---- */

static int tick_may_start(const struct schedule *s, const struct live_tick *t, int64_t now_ns)
{
	return t && t->row.state == TICK_WAITING && t->row.due_ns <= now_ns &&
	       (s->row.state == SCHEDULE_ACTIVE || t->row.manual);
}

static void tick_claim(struct schedule *s, struct live_tick *t, int64_t now_ns)
{
	struct store_tick before = t->row;
	struct err e;

	t->row.state = TICK_STARTING;
	t->row.attempt++;
	t->row.due_ns = now_ns;
	if (!t->row.started_ns)
		t->row.started_ns = now_ns;
	if (id_new(t->row.run, &e) < 0) {
		tick_store_failed(s, &e);
		t->row = before;
		return;
	}
	if (tick_put(s, t) < 0) {
		t->row = before;
		return;
	}
	if (t->row.attempt == 1) {
		int64_t due = t->row.at_ns +
			      schedule_jitter_ms(&s->settings, s->row.id, t->row.at_ns) * NS_MS;

		schedule_emit(s, "schedule.started", &t->row);
		if (now_ns - due > SCHEDULE_GRACE_NS)
			schedule_emit(s, "schedule.late", &t->row);
	}
	s->all->runner.start(s->all->runner.ctx, &s->row, &t->row);
}

void tick_start_due(struct schedule *s, int64_t now_ns)
{
	struct err e = { 0 };

	while (tick_may_start(s, s->ticks, now_ns) && s->retry_ns <= now_ns) {
		if (s->all->runner.may(s->all->runner.ctx, &s->row, &e)) {
			tick_claim(s, s->ticks, now_ns);
			return;
		}
		tick_finish(s, s->ticks, TICK_FAILED, e.msg);
		schedule_pause(s, SCHEDULE_PAUSED, e.msg);
	}
}

int64_t tick_wake_ns(const struct schedule *s)
{
	const struct live_tick *t = s->ticks;

	if (!t ||
	    (t->row.state == TICK_WAITING && s->row.state != SCHEDULE_ACTIVE && !t->row.manual))
		return INT64_MAX;
	if (t->row.state == TICK_WAITING)
		return t->row.due_ns;
	return s->settings.timeout_ms ? t->row.due_ns + (int64_t)s->settings.timeout_ms * NS_MS
				      : INT64_MAX;
}

/* ---- deciding ---- */

/* The ticks before the newest one end. */
static void tick_replace(struct schedule *s)
{
	struct live_tick *t = s->ticks;

	while (t && t->next) {
		struct live_tick *next = t->next;

		if (tick_is_started(t))
			tick_stop(s, t, STOP_REPLACED);
		else
			tick_finish(s, t, TICK_REPLACED, "the next tick was due");
		t = next;
	}
}

static const char *tick_overlaps(const struct schedule *s)
{
	if (!s->ticks)
		return NULL;
	if (s->settings.overlap == OVERLAP_SKIP)
		return "the tick before it was still running";
	if (s->settings.overlap == OVERLAP_QUEUE && tick_count(s) > SCHEDULE_QUEUE_MAX)
		return "100 ticks wait already";
	return NULL;
}

static int tick_decide_one(struct schedule *s, int64_t at_ns, int64_t now_ns)
{
	uint32_t jitter = schedule_jitter_ms(&s->settings, s->row.id, at_ns);
	struct store_tick t = tick_new(s, at_ns, at_ns + jitter * NS_MS);
	const char *skipped = tick_overlaps(s);
	int is_new;

	if (skipped) {
		t.state = TICK_SKIPPED;
		t.ended_ns = now_ns;
		snprintf(t.detail, sizeof(t.detail), "%s", skipped);
	}
	if (tick_insert(s, &t, at_ns, &is_new) < 0)
		return -1;
	if (!is_new)
		return 0;
	if (skipped) {
		schedule_emit(s, "schedule.skipped", &t);
		return 0;
	}
	tick_append(s, &t);
	if (s->settings.overlap == OVERLAP_REPLACE)
		tick_replace(s);
	return 0;
}

/* One row for all ticks that stay missed. */
static int tick_write_missed(struct schedule *s, int64_t first_ns, uint64_t count,
			     int64_t decided_ns, int64_t now_ns)
{
	struct store_tick t = tick_new(s, first_ns, first_ns);
	int is_new;

	t.state = TICK_MISSED;
	t.count = count;
	t.ended_ns = now_ns;
	snprintf(t.detail, sizeof(t.detail), "the server did not run at that time");
	if (tick_insert(s, &t, decided_ns, &is_new) < 0)
		return -1;
	if (is_new)
		schedule_emit(s, "schedule.missed", &t);
	return 0;
}

static int tick_write_caught_up(struct schedule *s, int64_t at_ns, int64_t now_ns)
{
	struct store_tick t = tick_new(s, at_ns, now_ns);
	int is_new;

	snprintf(t.detail, sizeof(t.detail), "the server did not run at that time");
	if (tick_insert(s, &t, at_ns, &is_new) < 0)
		return -1;
	if (is_new)
		tick_append(s, &t);
	return 0;
}

/* The next tick was missed: finds all that were, and those of them that are run now. */
static int tick_catch_up(struct schedule *s, int64_t now_ns)
{
	unsigned keep = s->settings.catch_up == CATCH_UP_NONE  ? 0
			: s->settings.catch_up == CATCH_UP_ONE ? 1
							       : s->settings.catch_up_max;
	int64_t last[CATCH_UP_MAX], first = s->next_ns, at = first, newest = first;
	const int64_t until = now_ns - SCHEDULE_GRACE_NS;
	uint64_t n = 0;

	while (at <= until) {
		if (keep)
			last[n % keep] = at;
		newest = at;
		if (++n == MISSED_COUNTED && at < until - RECENT_NS)
			at = until - RECENT_NS;
		if (!schedule_preview(&s->cron, s->zone, s->row.anchor_ns, at, &at, 1))
			break;
	}
	keep = n < keep ? (unsigned)n : keep;
	if (n > keep && tick_write_missed(s, first, n - keep,
					  keep ? last[(n - keep) % keep] - 1 : newest, now_ns) < 0)
		return -1;
	for (uint64_t i = n - keep; i < n; i++)
		if (tick_write_caught_up(s, last[i % keep], now_ns) < 0)
			return -1;
	return 0;
}

int tick_decide(struct schedule *s, int64_t now_ns)
{
	if (s->row.decided_ns > now_ns + NS_S && s->next_ns > now_ns) {
		/* The clock was set back. Ticks that have a row are not made again. */
		s->row.decided_ns = now_ns > s->row.forgotten_ns ? now_ns : s->row.forgotten_ns;
		schedule_set_next(s);
	}
	while (s->next_ns <= now_ns) {
		int64_t at = s->next_ns;

		if ((at <= now_ns - SCHEDULE_GRACE_NS ? tick_catch_up(s, now_ns)
						      : tick_decide_one(s, at, now_ns)) < 0)
			return -1;
	}
	return 0;
}

int tick_manual(struct schedule *s, int64_t now_ns, struct store_tick *out, struct err *e)
{
	struct store_tick t = tick_new(s, now_ns, now_ns);
	const char *busy = tick_overlaps(s);

	if (busy)
		return err_set(e, ERR_CONFLICT, "%s; wait for its end, or set overlap to queue",
			       busy);
	t.manual = 1;
	while (store_tick_add(s->all->store, &t, e) < 0) {
		if (e->kind != ERR_CONFLICT)
			return -1;
		t.at_ns++;
	}
	tick_append(s, &t);
	if (s->settings.overlap == OVERLAP_REPLACE)
		tick_replace(s);
	*out = t;
	return 0;
}
