/* schedule.h - decides the ticks of all schedules and starts what they ask for, exactly once each.
 * Owns:         the active schedules, the order of their next times, one timer.
 * Does not own: rows (store/schedules.h); what is started, and how (struct schedule_runner).
 *
 *   due --row--> waiting --row--> starting --> running --row--> succeeded, failed
 *    |             ^                              |
 *    |             +---------- retry -------------+
 *    +--row--> skipped (the one before still runs), missed (no server ran)
 *
 * The row of a tick (schedule, time) is unique and is committed before a request is made for it. What
 * became of a request is always read from the rows of what it started, so it makes no difference whether
 * this process or one that was killed has made it. */
#pragma once
#include "base/err.h"
#include "schedule/cron.h"
#include "schedule/settings.h"
#include "store/schedules.h"
#include <stdint.h>

struct loop;
struct zone;
struct schedules;

enum schedule_found {
	FOUND_NOTHING, /* nothing was started */
	FOUND_RUNNING,
	FOUND_SUCCEEDED,
	FOUND_FAILED,
};
struct schedule_runner {
	void *ctx;
	int64_t (*now_ns)(void *ctx); /* the wall clock */
	/* Starts t->run, an id that does not exist yet. A refusal is reported with schedules_refused(),
	 * not before this has returned; find() shows the rest. */
	void (*start)(void *ctx, const struct store_schedule *s, const struct store_tick *t);
	/* What became of t->run. FOUND_FAILED: out_why has the reason. */
	enum schedule_found (*find)(void *ctx, const struct store_schedule *s,
				    const struct store_tick *t, char out_why[STORE_REASON + 1]);
	/* Ends what the tick started; find() shows when that has happened. */
	void (*stop)(void *ctx, const struct store_schedule *s, const struct store_tick *t);
	/* 0: the principal of the schedule may no longer start anything, and e is the reason. */
	int (*may)(void *ctx, const struct store_schedule *s, struct err *e);
	/* t NULL: an event of the schedule itself. */
	void (*emit)(void *ctx, const char *type, const struct store_schedule *s,
		     const struct store_tick *t);
};

/* A tick that starts later than this after its time is late; a tick older than this when it is decided
 * was missed. */
#define SCHEDULE_GRACE_NS (60 * INT64_C(1000000000))
enum {
	SCHEDULE_HISTORY = 1000, /* rows of ticks that are kept of each schedule */
	SCHEDULES_OF_TEAM = 1000
};

/* loop NULL: there is no timer, and the caller calls schedules_advance() (tests). */
struct schedules *schedules_new(struct loop *l, struct store *s, const struct schedule_runner *r);
void schedules_free(struct schedules *a); /* what runs continues; the next server finds its rows */
/* Reads everything from the store and begins; this is the only server from now on. */
must_check int schedules_begin(struct schedules *a, struct err *e);
void schedules_end(struct schedules *a); /* decides no more ticks */

/* The row of a schedule was added, changed or removed. */
must_check int schedules_changed(struct schedules *a, const char *id, struct err *e);
/* Adds a tick for now. It obeys the overlap policy. */
must_check int schedules_run_now(struct schedules *a, const char *id, struct store_tick *out,
				 struct err *e);
/* An attempt of a tick was refused, or failed before t->run existed. run: "", or the record that shows
 * why. */
void schedules_refused(struct schedules *a, const struct store_tick *t, const char *run,
		       const char *why);
/* Looks at the rows of what was started and has not ended; run NULL: of all ticks. */
void schedules_look(struct schedules *a, const char *run);

/* Decides and starts everything that is due now. */
void schedules_advance(struct schedules *a);
int64_t schedules_wake_ns(
	const struct schedules *a); /* the next time that matters; INT64_MAX: none */

/* The next times of an expression, at most n: returns how many there are. */
unsigned schedule_preview(const struct cron *c, const struct zone *z, int64_t anchor_ns,
			  int64_t after_ns, int64_t *out_ns, unsigned n);
/* The next tick of a schedule that this server runs; 0: none. */
int64_t schedules_next_ns(const struct schedules *a, const char *id);
