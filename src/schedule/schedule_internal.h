/* schedule_internal.h - for the files of schedule.h only. */
#pragma once
#include "loop/loop.h"
#include "schedule/schedule.h"

struct live_tick {
	struct live_tick *next; /* a later one */
	struct store_tick row;
	enum live_stop { STOP_NONE, STOP_TIMEOUT, STOP_REPLACED } stopping; /* stop() was called */
};

struct schedule {
	struct schedules *all;
	struct schedule *next; /* in any order */
	struct store_schedule row;
	struct schedule_settings settings;
	struct cron cron;
	const struct zone *zone; /* NULL: it could not be read */
	int64_t next_ns;         /* the next tick to decide; INT64_MAX: none */
	int64_t wake_ns;         /* the key of the heap */
	int64_t retry_ns;        /* the store failed: not before this time; 0: it works */
	unsigned at;             /* in the heap */
	unsigned decided;        /* since rows were last removed */
	struct live_tick *ticks;
};

struct zone_entry {
	struct zone_entry *next;
	struct zone *zone;
};

struct schedules {
	struct loop *loop;
	struct store *store;
	struct schedule_runner runner;
	struct timer timer;
	struct schedule *first;
	struct schedule **heap; /* the one with the smallest wake_ns first */
	unsigned n, room;
	struct zone_entry *zones; /* read since the begin */
	int64_t looked_ns;
	int64_t logged_ns; /* when a failure of the store was last logged; 0: never */
	int running;
};

/* schedule.c */
int64_t schedules_now(const struct schedules *a);
void schedule_set_next(struct schedule *s);
void schedule_emit(struct schedule *s, const char *type, const struct store_tick *t);
void schedule_pause(struct schedule *s, enum store_schedule_state state, const char *reason);

/* tick.c */
/* Decides the ticks that are due. -1: the store failed, try again later. */
must_check int tick_decide(struct schedule *s, int64_t now_ns);
/* Starts what waits and may start. */
void tick_start_due(struct schedule *s, int64_t now_ns);
/* When something changes by itself: a waiting tick is due, a time limit ends; INT64_MAX: never. */
int64_t tick_wake_ns(const struct schedule *s);
struct live_tick *tick_append(struct schedule *s, const struct store_tick *row);
/* Reads what became of a started tick. */
void tick_look(struct schedule *s, struct live_tick *t, int after_restart);
void tick_refused(struct schedule *s, struct live_tick *t, const char *run, const char *why);
must_check int tick_manual(struct schedule *s, int64_t now_ns, struct store_tick *out,
			   struct err *e);
void tick_stop_overdue(struct schedule *s, int64_t now_ns);
void tick_free_all(struct schedule *s);
