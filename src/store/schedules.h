/* schedules.h - schedules, and their ticks. A tick is one time at which a schedule is due; at most one
 * row exists for it, and it is written before anything is started. */
#pragma once
#include "store/keys.h"
#include "store/store.h"

enum {
	STORE_EXPRESSION = 200, /* bytes of an expression: "0 6 * * 1-5" */
	STORE_ZONE = 64,
	STORE_REASON = 240,
};

enum store_schedule_kind { SCHEDULE_RUN, SCHEDULE_BATCH, SCHEDULE_PIPELINE, SCHEDULE_KINDS };
const char *store_schedule_kind_name(enum store_schedule_kind kind);
enum store_schedule_state { SCHEDULE_ACTIVE, SCHEDULE_PAUSED, SCHEDULE_ENDED, SCHEDULE_STATES };
const char *store_schedule_state_name(enum store_schedule_state state);

struct store_schedule {
	char id[ID_MAX + 1];
	char team[STORE_NAME + 1];
	char name[STORE_NAME + 1];
	char who[STORE_NAME + 1]; /* the principal that created it */
	char key[ID_MAX + 1];     /* and the key that it used; "": none that can be revoked */
	enum store_role role;
	int64_t created_ns, updated_ns;
	char expression[STORE_EXPRESSION + 1];
	char zone[STORE_ZONE + 1];
	int64_t anchor_ns; /* fixed distances count from here */
	enum store_schedule_kind kind;
	char *request;  /* JSON: the body of the request that a tick sends */
	char *settings; /* JSON: overlap, catch_up, retries ... */
	enum store_schedule_state state;
	char reason[STORE_REASON + 1]; /* why it does not run; "" while active */
	int64_t decided_ns;            /* all ticks up to here were decided */
	int64_t forgotten_ns;          /* rows of ticks up to here were removed */
};
void store_schedule_fini(struct store_schedule *x); /* frees its texts */

struct store_schedules {
	struct store_schedule *v;
	unsigned n;
	int more;
};
void store_schedules_fini(struct store_schedules *l);

/* ERR_CONFLICT: the team has a schedule of that name. */
must_check int store_schedule_add(struct store *s, const struct store_schedule *x, struct err *e);
/* By id: everything but id, team and created_ns. */
must_check int store_schedule_put(struct store *s, const struct store_schedule *x, struct err *e);
must_check int store_schedule_set_state(struct store *s, const char *id,
					enum store_schedule_state state, const char *reason,
					int64_t at_ns, struct err *e);
must_check int store_schedule_decide(struct store *s, const char *id, int64_t decided_ns,
				     struct err *e);
/* By id or name, within the team. */
must_check int store_schedule_get(struct store *s, const char *team, const char *id_or_name,
				  struct store_schedule *out, struct err *e);
must_check int store_schedule_by_id(struct store *s, const char *id, struct store_schedule *out,
				    struct err *e);
/* Newest first; team NULL: those of all teams, not paged. */
must_check int store_schedule_list(struct store *s, const char *team,
				   const struct store_cursor *after, unsigned limit,
				   struct store_schedules *out, struct err *e);
must_check int store_schedule_count(struct store *s, const char *team, uint64_t *out,
				    struct err *e);
must_check int store_schedule_remove(struct store *s, const char *id, struct err *e);

/* ---- ticks ---- */

enum store_tick_state {
	TICK_WAITING,  /* it will be started: when it is due, or after the one before it */
	TICK_STARTING, /* a request was made; after a crash the rows of runs show whether it ran */
	TICK_RUNNING,
	TICK_SUCCEEDED,
	TICK_FAILED,
	TICK_SKIPPED,  /* the one before was still running */
	TICK_MISSED,   /* no server ran at that time */
	TICK_REPLACED, /* it was ended because the next one was due */
	TICK_STATES
};
const char *store_tick_state_name(enum store_tick_state state);
int store_tick_is_live(enum store_tick_state state); /* waiting, starting, running */

struct store_tick {
	char schedule[ID_MAX + 1];
	int64_t at_ns; /* its time by the schedule */
	enum store_tick_state state;
	int manual;     /* started by a request, not by time */
	int64_t due_ns; /* when the (next) attempt starts: with jitter, or after a retry's pause */
	uint32_t attempt; /* the number of requests so far */
	int64_t started_ns, ended_ns;
	char run[ID_MAX + 1]; /* what it starts: a run, batch or pipeline */
	uint64_t count;       /* missed: this many ticks, from at_ns on */
	char detail[STORE_REASON + 1];
};
struct store_ticks {
	struct store_tick *v;
	unsigned n;
	int more; /* next page: before = at_ns of the last one */
};
void store_ticks_fini(struct store_ticks *l);

/* ERR_CONFLICT: this tick has a row. */
must_check int store_tick_add(struct store *s, const struct store_tick *t, struct err *e);
must_check int store_tick_put(struct store *s, const struct store_tick *t, struct err *e);
must_check int store_tick_get(struct store *s, const char *schedule, int64_t at_ns,
			      struct store_tick *out, struct err *e);
/* Newest first, those before `before_ns` (0: from the newest). */
must_check int store_tick_list(struct store *s, const char *schedule, int64_t before_ns,
			       unsigned limit, struct store_ticks *out, struct err *e);
/* All live ones, oldest first, not paged; schedule NULL: of all schedules. */
must_check int store_tick_live(struct store *s, const char *schedule, struct store_ticks *out,
			       struct err *e);
/* Keeps the newest rows of a schedule and the live ones. The schedule remembers up to where rows were
 * removed: such ticks are never started again. */
must_check int store_tick_trim(struct store *s, const char *schedule, unsigned keep, struct err *e);
