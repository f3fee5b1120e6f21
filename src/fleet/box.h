/* box.h - one box as the server manages it: from CREATE until nothing of it is left.
 * Owns:         its row in memory, the connection to its init, its execs, its timer.
 * Does not own: the processes. When the server dies, the next one restores this struct from the row
 *               and the keeper.
 *
 *   making --BOX--> running                   the keeper has created it, or OPEN has reached it
 *   making --BOX--> stopped                   OPEN has reached a stopped box
 *   making --DONE of FREEZE--> paused         a paused box after a restart of the server
 *   running --timeout, pause--> stopped       its programs end, its files stay
 *   running --timeout, pause--> paused        its processes are frozen
 *   stopped --used, resume--> running
 *   paused --resume, freeze failed--> running
 *   running --pause to disk--> paused         its box at the keeper has ended: row.image
 *   paused --resume--> making                 paused by an earlier server: its init is opened again
 *   running, stopped --> making               the other server has replaced its keeper box
 *   all of these --box_end()--> ending --DESTROYED--> deleted
 *
 * box_set_state() holds the table of these transitions and asserts each. A box that is being made
 * ends when it exists. */
#pragma once
#include "trace/trace.h"
#include "client/init_conn.h"
#include "fleet/port_conn.h"
#include "fleet/fleet.h"
#include "store/checkpoints.h"

enum box_state {
	BOX_MAKING,
	BOX_RUNNING,
	BOX_STOPPED, /* its programs have ended, its files exist */
	BOX_PAUSED,  /* all its processes are frozen */
	BOX_ENDING,
	BOX_DELETED,
	BOX_STATES
};
const char *box_state_name(enum box_state s);
int box_state_follows(enum box_state now, enum box_state next); /* 1: next may follow now */

/* In the metadata of a box that installs packages: the key of its set. */
#define BOX_INSTALL "atoll.install"
/* In the metadata of a box that builds a template: its build. No client may use it, as above. */
#define BOX_BUILD "atoll.build"
/* In the metadata of a box that waits, with its server running, for the next request of its template. */
#define BOX_SPARE "atoll.spare"
/* In the metadata of a box that gets the files of a copy: no client may use it before it has them. */
#define BOX_RESTART "atoll.restart"
/* In the metadata of a box that moves to another node (v1box/copies_leave.c): its last snapshot here, "" until that is
 * complete. No client may use it. */
#define BOX_LEAVING "atoll.leaving"
#define BOX_EPHEMERAL "atoll.ephemeral" /* in the metadata of a box that was created for one run */
#define BOX_RACE "atoll.race" /* besides that: created for a request, and useless without it */
/* In the metadata of a box that is unlike others of its kind: "1": its programs may reach the
 * registries of packages.*; "0": they may not. Without it: all boxes but those for one run may. */
#define BOX_REGISTRIES "atoll.registries"

/* Parameters of a new box. Borrowed for the call. */
struct box_spec {
	struct store_box row; /* team, name, session, template, timeouts, metadata, env */
	const char *
		id; /* of the new box, which another node had; NULL: that of its box at the keeper */
	struct wire_limits limits;
	uint16_t flags;   /* WIRE_CREATE_* */
	const char *warm; /* the warm interpreter that should wait in it; NULL: none */
	struct wire_mount mounts[WIRE_MOUNTS]; /* volumes; row.volumes describes them */
	unsigned nmounts;
	char layers[WIRE_LAYERS][WIRE_LAYER_ID]; /* below its root, the topmost first */
	unsigned nlayers;
	struct choose_request isolation; /* zero: nothing requested; its needs are added */
	int continues_programs;          /* of a process image: no start command */
	int is_own;    /* only programs of Atoll run in it: no minimum tier applies */
	int continues; /* for work that has begun: a machine that drains still creates it */
	char root
		[WIRE_LAYER_ID]; /* its root file system; "": the host's /usr. row.root describes it */
	/* Layers of the checkpoint row.origin, the topmost first: the files with which it starts. */
	char chain[STORE_CHAIN][ID_MAX + 1];
	unsigned nchain;
};

enum { BOX_UID = 1000 }; /* id and group of the user that every box has */
/* The user of programs in a box whose request names none: from row.root. */
struct box_user {
	int set; /* 0: a box of base */
	uint16_t uid, gid;
	char name[64], home[256], workdir[1024];
};

/* Waits for a change of a box; the owner may cancel it at any time. */
struct box_wait {
	struct box_wait *next;
	struct box *box; /* NULL: not waiting */
	void (*done)(struct box_wait *w, struct box *b, const struct err *e);
	/* For a new box, may be NULL: this will be its id. Called before its row is written. */
	int (*named)(struct box_wait *w, const char *id, struct err *e);
};
void box_wait_cancel(struct box_wait *w);

struct box {
	/* clang-format off */
	struct box *next; /* in its slot of the table, or in the list of boxes being created */
	struct fleet *fleet;
	struct store_box row;
	enum box_state state;
	struct wire_box about;
	struct wire_mount *mounts; /* its volumes, until it is created */
	unsigned nmounts;
	struct init_conn line;
	struct egress_client_link way;
	struct box_secrets_files *secret_files; /* being written: box_secrets.c; NULL: none */
	struct port_conns port_conns; /* connections to its ports that are being opened */
	uint16_t *listening; /* ports on which programs listened when they were last read; NULL:
			      * not read yet */
	unsigned nlistening;
	struct compile_reuse *reuses; /* compiled programs that are being copied in or out */
	struct keeper_call *asking;
	struct timer clock;
	struct wire_then told; /* the deadline that was sent to the keeper; then is WIRE_THENS if it
			        * is unknown */
	struct exec *runs;
	unsigned nruns;
	struct recent_exit *past; /* execs that ended recently, newest first */
	struct context *contexts; /* oldest first */
	unsigned ncontexts;
	unsigned readers;    /* exec readers with a connection of their own to its init */
	unsigned busy;       /* requests in progress: while there are any, the box is not idle */
	unsigned changes;    /* number of all requests so far that may have changed it */
	int is_prepared;     /* a process image of this moment is ready: checkpoint/prepare.h */
	unsigned holds, starts; /* number of all requests so far; number of all programs started so
				 * far */
	int is_known;        /* this process created it, so that holds, starts and layers are
			      * complete */
	char (*layers)[WIRE_LAYER_ID]; /* its layers, if is_known */
	unsigned nlayers;
	uint64_t active_ms;  /* loop_now_ms() of the last activity */
	uint64_t checkpoint_ms; /* the same of the last checkpoint of its interval */
	uint64_t output_tip; /* output offset of all execs at the last check; an increase counts as
			      * activity */
	struct wire_counters seen; /* counters of the kernel at the last request */
	uint64_t seen_ms;         /* loop_now_ms() of that request */
	uint64_t charged_us;      /* CPU time that was already charged to its team */
	int is_charged;           /* charged_us is known; after a restart it is the first value
				   * found */
	struct {
		uint64_t cpu_us, network_bytes; /* charged so far, with its runs: as in the store */
		uint64_t sampled_ms; /* until when memory was charged; 0: not known */
		int known;
	} charged;                /* charge.h */
	uint64_t unclaimed_kills; /* kills by the kernel for memory that do not explain the end of
				   * an exec yet */
	enum cause because;  /* why it is ending */
	uint64_t because_ms;
	uint64_t create_us, asked_ms;
	struct trace_context trace; /* of its creation */
	int64_t made_ns, stored_ns, network_ns; /* parts of it, if it is recorded: the end of each */
	uint64_t asked_ns, asked_real_ns; /* when the keeper was asked, and by the wall clock */
	int is_installer;   /* a box that installs packages: its result is for all teams, so no client
		        * may use the box */
	struct box_user user; /* of its template */
	int is_spare;       /* no client may use it yet */
	int is_leaving;     /* no client may use it: it moves to another node */
	int is_packing;     /* for that, by this server: its programs end, its files are packed */
	char *stays_because; /* why it could not leave when that was tried last; NULL: it was not tried */
	int registries;     /* its programs may reach the registries of packages.* */
	int ephemeral; /* restored, and created for one run: ends with it */
	int died;      /* ended without a request */
	int intended;  /* the intention to end it is in the store */
	int continues_programs; /* of a process image, in place of a start command */
	int restoring; /* counted in fleet.restoring */
	enum { STILL, PAUSING, RESUMING } moving; /* a request to freeze or thaw is in progress */
	int rebooting; /* being resumed with its files only */
	int storing;   /* being paused to the disk */
	struct box_store_wait *store_wait; /* box_disk.c; NULL: its row is not being written to the disk */
	int loading;   /* being resumed from there: its new box at the keeper is not complete */
	int asked_load; /* the process image was requested from the disk */
	int rising, rising_reboot; /* a resume was requested while it was being paused */
	int64_t paused_ns; /* how long it was paused, set when it is resumed */
	struct box_replacement *replacing; /* box_replace.c; NULL: its keeper box stays */
	int late;      /* restored, but its init could not be reached yet: tried again */
	struct box_wait *made, *ended;
	struct box_wait *risen; /* waiters for the resume */
	struct box_wait *replaced; /* waiters for another keeper box */
	struct init_call look; /* lists its execs, to detect activity */
	struct init_call tally; /* after a restart: how much input its execs have received */
	int tally_again;
	uint64_t tallies; /* number of those that were requested */
	uint64_t look_tip;
	/* clang-format on */
};

/* The id of this box at the keeper, for requests to it. */
const char *box_keeper_id(const struct box *b);
/* The same for a box by its id; the id itself if this server does not know the box. */
const char *fleet_keeper_id(const struct fleet *f, const char *id);

/* Flags of its CREATE that a copy of it needs, too. */
uint16_t box_made_flags(const struct store_box *row);

/* Requests a box from the keeper; w->done is called when it exists, or with the error (then the
 * struct has been freed). */
must_check int box_create(struct fleet *f, const struct box_spec *want, struct box_wait *w,
			  struct box **out, struct err *e);
/* What box_create() would ask for: for isolation_accepts(). */
struct isolation_ask box_isolation(const struct box_spec *want);
/* Restores a box from its row, after a restart or when another server created it. w may be NULL;
 * its done is called when the box was reached, or with the error. */
void box_restore(struct fleet *f, struct store_box *take_row, struct box_wait *w);
void box_await(struct box *b, struct box_wait *w); /* for a box that is being created or restored */
/* This is now the only server: reads the last rows that the other one wrote. */
void box_resync(struct box *b);
/* Deletes the box; w may be NULL. If the box is already ending, w only waits. */
/* Programs run in it that its rows describe, and that this server has not started. */
void box_adopt_execs(struct box *b);
void box_end(struct box *b, enum cause because, struct box_wait *w);
/* Writes what box_end() writes first, so that it can be part of the caller's transaction. The
 * caller then calls box_end() with the same cause, before it returns to the loop. */
void box_mark_ending(struct box *b, enum cause because);
/* Extends the time for which a box with on_loss runs: that of the lease of this node. Without a lease nothing is sent, and
 * init stops the box when the last one ends. */
void box_send_lease(struct box *b);
/* Executes the on_timeout action: kill, pause, or end all programs and keep the files. */
void box_on_timeout(struct box *b, enum cause because, uint64_t ms);
/* The same, and a pause is one in memory. */
void box_freeze_at_timeout(struct box *b, enum cause because, uint64_t ms);
/* Freezes all processes of a running box until it is resumed; with memory 0 its programs end and
 * only its files are kept. w (may be NULL) is called when that is done, or with the error: then the
 * box keeps running. Its lifetime does not elapse while it is paused; it is stored for
 * row.retention_ms, or until deleted if that is 0. ERR_CONFLICT: the box does not run. */
must_check int box_pause(struct box *b, int memory, struct box_wait *w, struct err *e);
/* Pausing to the disk: box_disk.c. From begin until box_store() or box_store_failed() the box is paused and its programs
 * are stopped by the caller. w as for box_pause(). */
must_check int box_store_check(const struct box *b, struct err *e);
void box_store_begin(struct box *b, struct box_wait *w);
/* Its files and programs are in this checkpoint: the row is written, and when the disk has it, the box at the keeper is
 * ended. done is called once then, or when the box has ended, perhaps before this returns. -1: nothing was written, and it
 * is not called. */
must_check int box_store(struct box *b, const struct store_checkpoint *in, void (*done)(void *ctx),
			 void *ctx, struct err *e);
void box_store_failed(struct box *b, const struct err *e); /* it runs */
/* Resumes a paused or stopped box, and restarts its lifetime; a box that is being paused is resumed
 * as soon as that is done. ERR_CONFLICT: the box runs. reboot: with its files only, like a stopped
 * box. w may be called before this returns. */
must_check int box_resume(struct box *b, int reboot, struct box_wait *w, struct err *e);
/* Replaces the box of the keeper that has this id by a new one, with the files of a checkpoint: its programs end with
 * CAUSE_ROLLBACK, its row, tokens, ports and timers stay. event: "box.rolled_back" or
 * "box.promoted", written in the same transaction; take_data: its data. w is called when the new one
 * is in place, or with the error: then nothing has changed. ERR_CONFLICT: the box is not in a state
 * for it. */
must_check int box_replace(struct box *b, const struct store_checkpoint *to, const char *event,
			   json_t *take_data, struct box_wait *w, struct err *e);
/* After a start: ends boxes of the keeper that were replaced and still exist. */
void box_replace_sweep(struct fleet *f);
void box_wake(struct box *b); /* from stopped to running, because it is used again */
/* Queries init how much input its execs have received; see exec_on_counters(). */
void box_request_counters(struct box *b);
void box_touch(struct box *b);   /* activity */
void box_hold(struct box *b);    /* a request starts ... */
void box_release(struct box *b); /* ... and ends */
/* Reads again what its metadata says about its use, and row.root. */
void box_read_marks(struct box *b);
/* Stores other metadata. If that fails, the box keeps what it has. */
must_check int box_set_metadata(struct box *b, char *take_metadata, struct err *e);
int box_is_marked(const struct store_box *row, const char *word); /* checks its metadata */
/* The text of metadata (NULL: none) with one more pair, for free(). */
char *box_metadata_with(const char *metadata, const char *key, const char *value);
/* The same without this pair; NULL: nothing is left. */
char *box_metadata_without(const char *metadata, const char *key);
/* Writes a box that leaves: snapshot "" until its last one is complete; NULL: it does not leave. */
must_check int box_set_leaving(struct box *b, const char *snapshot, struct err *e);
/* The snapshot with which it can start on another node; "": none yet, for free(). */
char *box_leaving_snapshot(const struct box *b);
/* Why a box stays on a node whose boxes move to others; NULL: it can move. */
const char *box_stays_because(const struct box *b);
/* After a change of timeouts, name or metadata in the row: writes the row and sets the
 * timer again. */
must_check int box_changed(struct box *b, struct err *e);
void box_free(struct box *b); /* the memory only */

/* Called with new counters of the kernel: charges the CPU time since the last ones to the team. */
void box_count_cpu(struct box *b, const struct wire_counters *now);
/* The same on hosts without such a counter: CPU time of a program that has ended. */
void box_count_reaped(struct box *b, uint64_t cpu_us);

/* For exec_end.c: a program of the box has ended. */
void box_exec_ended(struct box *b, struct exec *r);
uint64_t box_left_ms(const struct box *b); /* rest of its lifetime; UINT64_MAX: no limit */
/* Marks a box (in row.surface) whose lifetime counts from its last use, not from its creation. ends_ns
 * of the row is only moved when it is reached, so that a box in use costs no writes; box_ends_ns()
 * returns the effective time. */
#define BOX_RENEWED "{\"lifetime_from\":\"use\"}"
int box_renews(const struct store_box *row);
int64_t box_ends_ns(const struct box *b);
