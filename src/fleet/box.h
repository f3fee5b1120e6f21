/* box.h - one box under the fleet's care: from CREATE until nothing of it is left.
 * Owns:         its row in memory, the line to its init, its runs, its clock.
 * Does not own: the box. When the daemon dies the berth is rebuilt from the row and the keeper.
 *
 *   making -> running <-> kept, paused -> ending -> gone */
#pragma once
#include "client/init_conn.h"
#include "fleet/port_conn.h"
#include "fleet/fleet.h"

enum box_state {
	BOX_MAKING,
	BOX_RUNNING,
	BOX_KEPT,   /* its programs have ended, its files are there */
	BOX_PAUSED, /* nothing of it runs, all of it is there */
	BOX_ENDING,
	BOX_GONE,
	BOX_STATES
};
const char *box_state_name(enum box_state s);

#define BOX_INSTALL "atoll.install"     /* of a box that installs packages: the key of its set */
#define BOX_EPHEMERAL "atoll.ephemeral" /* in the metadata of a box made for one run */

/* What is wanted of a new box. Borrowed for the call. */
struct box_spec {
	struct store_box row; /* team, name, session, template, timeouts, metadata, env */
	struct wire_limits limits;
	uint16_t flags;   /* WIRE_CREATE_* */
	const char *seed; /* the interpreter that should wait in it; NULL: none */
	struct wire_mount mounts[WIRE_MOUNTS]; /* volumes; row.volumes tells of them */
	unsigned nmounts;
	char layers[WIRE_LAYERS][WIRE_LAYER_ID]; /* below its root, the first on top */
	unsigned nlayers;
};

/* Waits for something to happen to a berth; its owner may leave any time. */
struct box_wait {
	struct box_wait *next;
	struct box *box; /* NULL: waits for nothing */
	void (*done)(struct box_wait *w, struct box *b, const struct err *e);
	/* Of one that is made, may be NULL: this will be its id. Told before there is a row of it. */
	int (*named)(struct box_wait *w, const char *id, struct err *e);
};
void box_wait_cancel(struct box_wait *w);

struct box {
	/* clang-format off */
	struct box *next; /* in its slot, or among those being made */
	struct fleet *fleet;
	struct store_box row;
	enum box_state state;
	struct wire_box about;
	struct wire_mount *mounts; /* until it is made: its volumes */
	unsigned nmounts;
	struct init_conn line;
	struct egress_client_link way;
	struct port_conns inlets; /* connections into it that are being made */
	struct compile_reuse *reuses; /* what compilers made, on its way in or out */
	struct keeper_call *asking;
	struct timer clock;
	struct wire_then told; /* the deadline as the keeper knows it; then is WIRE_THENS where nobody can say */
	struct exec *runs;
	unsigned nruns;
	struct recent_exit *past; /* those that ended a moment ago, the newest first */
	struct context *contexts; /* oldest first */
	unsigned ncontexts;
	unsigned readers;    /* taps with a connection of their own to its init */
	unsigned busy;       /* requests that are being served: while there are some it is not idle */
	unsigned holds, starts; /* requests that there ever were; programs that were ever started */
	int is_known;        /* this process made it: the two, and what it is made of, are all there is */
	char (*layers)[WIRE_LAYER_ID]; /* those, if so */
	unsigned nlayers;
	uint64_t active_ms;  /* loop_now_ms() of the last activity */
	uint64_t output_tip; /* of all execs, when last looked at: more of it is activity, too */
	struct wire_counted seen; /* the kernel's figures when last asked */
	uint64_t seen_ms;         /* loop_now_ms() of that */
	uint64_t charged_us;      /* of its CPU time: told to the accounts */
	int is_charged;           /* charged_us is known; after a restart it is what is found first */
	uint64_t unclaimed_kills; /* for memory, that explain no run yet */
	enum cause because;  /* why it is ending */
	uint64_t because_ms;
	uint64_t create_us, asked_ms;
	int nobodys;   /* an install box: what comes out of it is for everybody, so nobody may touch it */
	int ephemeral; /* restored, and made for one run only: ends with it */
	int died;      /* nobody asked for its end */
	int intended;  /* that it ends is in the store */
	int restoring; /* counted in fleet.restoring */
	enum { STILL, PAUSING, RESUMING } moving; /* paused, and the keeper is being asked */
	int rebooting; /* resumed, but not its programs */
	int rising, rising_reboot; /* it is to be resumed as soon as it stands still */
	int64_t paused_ns; /* for how long it was, when it is set going again */
	int late;      /* restored, but its init could not be reached yet: asked again */
	struct box_wait *made, *ended;
	struct box_wait *risen; /* those who wait for that */
	struct init_call look; /* at its execs, to see whether something happens in it */
	struct init_call tally; /* after a restart: what its execs have got */
	int tally_again;
	uint64_t look_tip;
	/* clang-format on */
};

/* Asks for a box; w->done tells when it is there, or why not (then the berth is no more). */
must_check int box_create(struct fleet *f, const struct box_spec *want, struct box_wait *w,
			  struct box **out, struct err *e);
/* From a row, after a restart or when another front made it. w may be NULL; it is told when the box
 * is there, or that it is not. */
void box_restore(struct fleet *f, struct store_box *take_row, struct box_wait *w);
void box_await(struct box *b, struct box_wait *w); /* one that is being made or restored */
/* No other front is beside us any more: what it did last is in the store. */
void box_resync(struct box *b);
/* Ends it; w may be NULL. Called for one that is ending already it only waits. */
void box_end(struct box *b, enum cause because, struct box_wait *w);
/* What box_end() writes before it does anything, so that it can be of the caller's transaction. Who
 * has called this calls box_end() next, with the same cause, in the same turn. */
void box_mark_ending(struct box *b, enum cause because);
/* What on_timeout asks for: kill, or end all programs and keep the files. */
void box_on_timeout(struct box *b, enum cause because, uint64_t ms);
/* Of one that runs: everything stands still until it is resumed; without memory its programs end and
 * its files are kept. w (may be NULL) hears when that is so, or why not: then it runs on. The time
 * of its life stands still, too; it is there for row.retention_ms, or until deleted when that is 0.
 * ERR_CONFLICT: it does not run. */
must_check int box_pause(struct box *b, int memory, struct box_wait *w, struct err *e);
/* Of one that is paused or kept: it runs, and its lifetime begins again; of one that is being paused,
 * as soon as it stands still. One that runs is refused (ERR_CONFLICT). reboot: with its files alone, as
 * a kept one is. w may be told before this returns. */
must_check int box_resume(struct box *b, int reboot, struct box_wait *w, struct err *e);
void box_wake(struct box *b); /* from kept to running: it is used again */
void box_request_counters(
	struct box *b);          /* asks init what its execs have got; exec_on_counters() */
void box_touch(struct box *b);   /* activity */
void box_hold(struct box *b);    /* a request begins ... */
void box_release(struct box *b); /* ... and ends */
/* After row's timeouts, name or metadata were changed: writes it, sets the clock again. */
must_check int box_changed(struct box *b, struct err *e);
void box_free(struct box *b); /* the memory only */

/* The kernel's figures of it are known: what it has computed since the last ones goes to the accounts. */
void box_count_cpu(struct box *b, const struct wire_counted *now);
/* The same where there is no such figure: of a program that has ended. */
void box_count_reaped(struct box *b, uint64_t cpu_us);

/* For run_end.c: its program is over. */
void box_exec_ended(struct box *b, struct exec *r);
uint64_t box_left_ms(const struct box *b); /* of its lifetime; UINT64_MAX: no end */
/* Its lifetime counts from its last use (row.door says so), not from its creation. The row's ends_ns is
 * moved when it is due, so that a box in use costs no writes; box_ends_ns() is the time that holds now. */
#define BOX_RENEWED "{\"lifetime_from\":\"use\"}"
int box_renews(const struct store_box *row);
int64_t box_ends_ns(const struct box *b);
/* It was used since ends_ns was set: ends_ns is set anew. 0: its lifetime is over. */
int box_renew(struct box *b);
