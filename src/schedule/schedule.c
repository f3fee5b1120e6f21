/* schedule.c - see schedule.h: which schedule is next. tick.c has the life of a tick. */
#include "schedule/schedule.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "schedule/schedule_internal.h"
#include "schedule/zone.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_S INT64_C(1000000000)
enum { TIMER_MS = 1000 }; /* at most: the clock may be set, and what was started may have ended */

int64_t schedules_now(const struct schedules *a)
{
	return a->runner.now_ns(a->runner.ctx);
}

unsigned schedule_preview(const struct cron *c, const struct zone *z, int64_t anchor_ns,
			  int64_t after_ns, int64_t *out_ns, unsigned n)
{
	int64_t at = after_ns / NS_S;
	unsigned i = 0;

	while (i < n && cron_next(c, z, anchor_ns / NS_S, at, &at))
		out_ns[i++] = at * NS_S;
	return i;
}

void schedule_set_next(struct schedule *s)
{
	int64_t from =
		s->row.decided_ns > s->row.forgotten_ns ? s->row.decided_ns : s->row.forgotten_ns;

	if (s->row.state != SCHEDULE_ACTIVE || !s->zone ||
	    !schedule_preview(&s->cron, s->zone, s->row.anchor_ns, from, &s->next_ns, 1))
		s->next_ns = INT64_MAX;
}

void schedule_emit(struct schedule *s, const char *type, const struct store_tick *t)
{
	s->all->runner.emit(s->all->runner.ctx, type, &s->row, t);
}

/* Ticks that wait are not started while the schedule is paused. */
static void schedule_skip_waiting(struct schedule *s)
{
	struct err e;

	for (struct live_tick **at = &s->ticks, *t; (t = *at);) {
		if (t->row.state != TICK_WAITING || t->row.manual) {
			at = &t->next;
			continue;
		}
		t->row.state = TICK_SKIPPED;
		t->row.ended_ns = schedules_now(s->all);
		snprintf(t->row.detail, sizeof(t->row.detail), "the schedule was paused");
		if (store_tick_put(s->all->store, &t->row, &e) < 0)
			log_error("a tick could not be written", LOG_S("schedule", s->row.id),
				  LOG_S("error", e.msg));
		*at = t->next;
		free(t);
	}
}

void schedule_pause(struct schedule *s, enum store_schedule_state state, const char *reason)
{
	struct err e;

	if (store_schedule_set_state(s->all->store, s->row.id, state, reason, schedules_now(s->all),
				     &e) < 0)
		log_error("a schedule could not be paused", LOG_S("schedule", s->row.id),
			  LOG_S("error", e.msg));
	s->row.state = state;
	snprintf(s->row.reason, sizeof(s->row.reason), "%s", reason);
	s->next_ns = INT64_MAX;
	schedule_skip_waiting(s);
	schedule_emit(s, state == SCHEDULE_ENDED ? "schedule.ended" : "schedule.paused", NULL);
}

/* ---- the heap ---- */

static void heap_set(struct schedules *a, unsigned at, struct schedule *s)
{
	a->heap[at] = s;
	s->at = at;
}

static void heap_fix(struct schedules *a, struct schedule *s)
{
	unsigned at = s->at, child;

	while (at && a->heap[(at - 1) / 2]->wake_ns > s->wake_ns) {
		heap_set(a, at, a->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	while ((child = 2 * at + 1) < a->n) {
		if (child + 1 < a->n && a->heap[child + 1]->wake_ns < a->heap[child]->wake_ns)
			child++;
		if (a->heap[child]->wake_ns >= s->wake_ns)
			break;
		heap_set(a, at, a->heap[child]);
		at = child;
	}
	heap_set(a, at, s);
}

static void heap_add(struct schedules *a, struct schedule *s)
{
	if (a->n == a->room) {
		a->room = a->room ? 2 * a->room : 64;
		a->heap = realloc(a->heap, a->room * sizeof(*a->heap));
		if (!a->heap)
			abort();
	}
	heap_set(a, a->n++, s);
	heap_fix(a, s);
}

static void heap_remove(struct schedules *a, struct schedule *s)
{
	struct schedule *last = a->heap[--a->n];

	if (last == s)
		return;
	heap_set(a, s->at, last);
	heap_fix(a, last);
}

/* ---- one schedule ---- */

static const struct zone *schedule_zone(struct schedules *a, const char *name, struct err *e)
{
	struct zone_entry *x = a->zones;
	struct zone *z;

	while (x && strcmp(zone_name(x->zone), name) != 0)
		x = x->next;
	if (x)
		return x->zone;
	if (zone_load(&z, name, e) < 0)
		return NULL;
	x = calloc(1, sizeof(*x));
	if (!x)
		abort();
	x->zone = z;
	x->next = a->zones;
	a->zones = x;
	return z;
}

/* The row is in place: reads what it says. */
static void schedule_read(struct schedule *s)
{
	json_t *doc = json_loads(s->row.settings ? s->row.settings : "{}", 0, NULL);
	struct err e = { 0 };

	schedule_settings_default(&s->settings);
	s->zone = NULL;
	if (schedule_settings_read(&s->settings, doc, &e) == 0 &&
	    cron_parse(&s->cron, s->row.expression, &e) == 0)
		s->zone = schedule_zone(s->all, s->row.zone, &e);
	json_decref(doc);
	/* For example, the time zone database was removed. */
	if (!s->zone && s->row.state == SCHEDULE_ACTIVE)
		schedule_pause(s, SCHEDULE_PAUSED, e.msg);
	schedule_set_next(s);
}

static void schedule_set_wake(struct schedule *s, int64_t now_ns)
{
	int64_t ticks = tick_wake_ns(s);

	s->wake_ns = ticks < s->next_ns ? ticks : s->next_ns;
	if (s->wake_ns < s->retry_ns)
		s->wake_ns = s->retry_ns;
	else if (s->wake_ns <= now_ns)
		s->wake_ns = now_ns + NS_S; /* it waits for what it has stopped */
	heap_fix(s->all, s);
}

/* Does everything that is due now. */
static void schedule_step(struct schedule *s)
{
	int64_t now = schedules_now(s->all);

	if (s->retry_ns && s->retry_ns <= now)
		s->retry_ns = 0;
	if (!s->retry_ns && tick_decide(s, now) == 0) {
		tick_stop_overdue(s, now);
		tick_start_due(s, now);
	}
	if (s->row.state == SCHEDULE_ACTIVE && s->next_ns == INT64_MAX && !s->ticks)
		schedule_pause(s, SCHEDULE_ENDED, "it has no more times");
	schedule_set_wake(s, now);
}

static struct schedule *schedules_find(const struct schedules *a, const char *id)
{
	struct schedule *s = a->first;

	while (s && strcmp(s->row.id, id) != 0)
		s = s->next;
	return s;
}

static struct schedule *schedule_open(struct schedules *a, struct store_schedule *take_row)
{
	struct schedule *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->all = a;
	s->row = *take_row;
	s->wake_ns = INT64_MAX;
	s->next = a->first;
	a->first = s;
	schedule_read(s);
	heap_add(a, s);
	return s;
}

static void schedule_close(struct schedule *s)
{
	struct schedule **at = &s->all->first;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	heap_remove(s->all, s);
	tick_free_all(s);
	store_schedule_fini(&s->row);
	free(s);
}

/* ---- all of them ---- */

static void schedules_arm(struct schedules *a)
{
	int64_t wait = a->n ? a->heap[0]->wake_ns - schedules_now(a) : INT64_MAX;

	if (!a->loop || !a->running)
		return;
	if (wait > TIMER_MS * INT64_C(1000000))
		wait = TIMER_MS * INT64_C(1000000);
	timer_set(&a->timer, wait > 0 ? (uint64_t)(wait + 999999) / 1000000 : 0);
}

void schedules_advance(struct schedules *a)
{
	int64_t now = schedules_now(a);

	while (a->running && a->n && a->heap[0]->wake_ns <= now)
		schedule_step(a->heap[0]);
	schedules_arm(a);
}

int64_t schedules_wake_ns(const struct schedules *a)
{
	return a->n ? a->heap[0]->wake_ns : INT64_MAX;
}

int64_t schedules_next_ns(const struct schedules *a, const char *id)
{
	const struct schedule *s = schedules_find(a, id);

	return s && s->next_ns != INT64_MAX ? s->next_ns : 0;
}

static void schedules_due(struct timer *t)
{
	struct schedules *a = loop_owner(t, struct schedules, timer);
	int64_t now = schedules_now(a);

	if (now - a->looked_ns >= NS_S || now < a->looked_ns) {
		a->looked_ns = now;
		schedules_look(a, NULL);
		/* After the clock was set back, no time of the heap may be near. */
		for (struct schedule *s = a->first; s; s = s->next)
			if (s->row.decided_ns > now + NS_S)
				schedule_step(s);
	}
	schedules_advance(a);
}

void schedules_look(struct schedules *a, const char *run)
{
	for (struct schedule *s = a->first; s && a->running; s = s->next) {
		struct live_tick *t = s->ticks;

		/* Only the first one can have been started. */
		if (!t || t->row.state == TICK_WAITING ||
		    (run && t->row.state == TICK_RUNNING && strcmp(t->row.run, run) != 0))
			continue;
		tick_look(s, t, 0);
		schedule_step(s);
	}
	schedules_arm(a);
}

void schedules_refused(struct schedules *a, const struct store_tick *of, const char *run,
		       const char *why)
{
	struct schedule *s = a->running ? schedules_find(a, of->schedule) : NULL;
	struct live_tick *t = s ? s->ticks : NULL;

	if (!t || t->row.at_ns != of->at_ns || t->row.attempt != of->attempt ||
	    t->row.state == TICK_WAITING)
		return;
	tick_refused(s, t, run, why);
	schedule_step(s);
	schedules_arm(a);
}

int schedules_run_now(struct schedules *a, const char *id, struct store_tick *out, struct err *e)
{
	struct schedule *s = a->running ? schedules_find(a, id) : NULL;

	if (!s)
		return err_set(e, ERR_CONFLICT, "schedules do not run yet; repeat in a second");
	if (tick_manual(s, schedules_now(a), out, e) < 0)
		return -1;
	schedule_step(s);
	schedules_arm(a);
	return 0;
}

int schedules_changed(struct schedules *a, const char *id, struct err *e)
{
	struct schedule *s = schedules_find(a, id);
	struct store_schedule row;

	if (!a->running)
		return 0; /* it is read when this server begins */
	if (store_schedule_by_id(a->store, id, &row, e) < 0) {
		if (e->kind != ERR_NOT_FOUND)
			return -1;
		if (s)
			schedule_close(s);
		return 0;
	}
	if (s) {
		store_schedule_fini(&s->row);
		s->row = row;
		schedule_read(s);
	} else {
		s = schedule_open(a, &row);
	}
	if (s->row.state != SCHEDULE_ACTIVE)
		schedule_skip_waiting(s);
	schedule_step(s);
	schedules_arm(a);
	return 0;
}

/* ---- life ---- */

struct schedules *schedules_new(struct loop *l, struct store *s, const struct schedule_runner *r)
{
	struct schedules *a = calloc(1, sizeof(*a));

	if (!a)
		abort();
	a->loop = l;
	a->store = s;
	a->runner = *r;
	if (l)
		timer_init(&a->timer, l, schedules_due);
	return a;
}

static int schedules_read_ticks(struct schedules *a, struct err *e)
{
	struct store_ticks ticks;
	struct schedule *s = NULL;

	if (store_tick_live(a->store, NULL, &ticks, e) < 0)
		return -1;
	for (unsigned i = 0; i < ticks.n; i++) { /* sorted by schedule */
		if (!s || strcmp(s->row.id, ticks.v[i].schedule) != 0)
			s = schedules_find(a, ticks.v[i].schedule);
		if (s)
			tick_append(s, &ticks.v[i]);
	}
	store_ticks_fini(&ticks);
	return 0;
}

int schedules_begin(struct schedules *a, struct err *e)
{
	struct store_schedules rows;

	if (a->running)
		return 0;
	if (store_schedule_list(a->store, NULL, NULL, 0, &rows, e) < 0)
		return -1;
	for (unsigned i = 0; i < rows.n; i++)
		schedule_open(a, &rows.v[i]);
	free(rows.v); /* their texts are in use */
	if (schedules_read_ticks(a, e) < 0) {
		schedules_end(a);
		return -1;
	}
	a->running = 1;
	for (struct schedule *s = a->first; s; s = s->next) {
		for (struct live_tick *t = s->ticks, *next; t; t = next) {
			next = t->next;
			if (t->row.state != TICK_WAITING)
				tick_look(s, t, 1);
		}
		schedule_step(s);
	}
	schedules_arm(a);
	return 0;
}

void schedules_end(struct schedules *a)
{
	a->running = 0;
	if (a->loop)
		timer_clear(&a->timer);
	while (a->first)
		schedule_close(a->first);
	while (a->zones) {
		struct zone_entry *x = a->zones;

		a->zones = x->next;
		zone_free(x->zone);
		free(x);
	}
}

void schedules_free(struct schedules *a)
{
	if (!a)
		return;
	schedules_end(a);
	if (a->loop)
		timer_fini(&a->timer);
	free(a->heap);
	free(a);
}
