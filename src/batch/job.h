/* job.h - one item in a fresh box: claimed, filled, run, judged, released. No row, no event, no
 * entry in the fleet.
 * Owns: the item, its box (kill on close: it ends with this process), its output so far.
 *
 * A compiled binary is packed after the compiler ran, unless the compile cache has it:
 * buildcache/compile_reuse.h.
 *
 *   CREATE -> KILL_ON_CLOSE, PUT_EARLY..., START -> OUTPUT..., EXIT -> [START again] -> verdict -> close
 *                (at once)                 bad end: KILL with the kernel's figures --^
 *
 * With a chain (item.h) the box starts with the files of a checkpoint.
 *
 * A program that exits 0 costs two requests to the keeper (a box, its figures) and no file
 * worker. */
#pragma once
#include "record/cause.h"
#include "client/init_conn.h"
#include "lang/compile_cache.h"
#include "fleet/fleet.h"
#include "store/usage.h"
#include "batch/item.h"

enum verdict { VERDICT_PASSED, VERDICT_FAILED, VERDICT_ERROR, VERDICT_COUNT };
const char *verdict_name(enum verdict v);

/* Causes: those of record/cause.h, and some that only batches have. */
enum {
	WHY_STDOUT = CAUSE_COUNT, /* it said something else */
	WHY_OUTPUT,               /* it said far too much */
	WHY_COMPILE,
	WHY_INVALID, /* no item at all */
	WHY_QUOTA,
	WHY_COUNT,
};
const char *why_name(unsigned why);

struct batch_job;
struct batch_job_end {
	enum verdict verdict;
	unsigned why;
	struct exit_info end;  /* valid unless verdict is ERROR */
	const char *step;      /* "compile", "run" */
	struct err e;          /* ERROR: the reason, an error of the server or of the item */
	unsigned differs_line; /* WHY_STDOUT: where */
	uint64_t cpu_us;       /* of its box, all steps together */
};

/* What the team is charged for an item that was run; the caller adds key, tag and subject. */
struct batch_job;
struct store_charge batch_job_charge(const struct batch_job *j, const struct batch_job_end *end,
				     const char *team);
/* Charges for a program of a pipeline. key, pipeline: NULL: none. */
void batch_job_charge_pipeline(const struct batch_job *j, const struct batch_job_end *end,
			       const char *team, const char *key, const char *pipeline);

struct batch_job_post { /* a command that was run after the program, in its box */
	int ran;
	unsigned cause;
	int status;      /* as a shell would see it */
	struct buf said; /* the beginning of both streams */
};

struct batch_job {
	/* clang-format off */
	struct fleet *fleet;
	struct batch_item item;
	const char *team; /* NULL, or the team for which compiled programs are stored; borrowed */
	const char *warm_team; /* the team whose zygote forks its interpreter; NULL: that of
			        * `team`; borrowed */
	struct isolation_choice tier; /* of its box: batch_job_choose() */
	int is_chosen;
	void (*done)(struct batch_job *j, const struct batch_job_end *end); /* once; then batch_job_fini() */
	/* NULL, or a callback for the output of the program as it arrives. */
	void (*said)(struct batch_job *j, const char *step, unsigned stream, const char *bytes, size_t n);
	struct keeper_call *asking;
	struct wire_box about;
	struct init_conn line;
	int open;
	struct init_call init_call, laid; /* the program; the files */
	unsigned step;
	struct buf out[2];
	uint64_t seen[2]; /* bytes received; out has the first of them */
	struct buf tail[2]; /* the last of the rest, if the item requests them */
	struct batch_job_post behind[ITEM_BEHIND];
	unsigned nbehind; /* steps that were started; the last one may be running */
	int is_behind;	  /* the program has succeeded */
	int flooded;
	size_t input_sent;
	int input_ended;
	struct wire_exit exit;
	int exited;
	int counted; /* the kernel's counters of its box at the end of the program: */
	struct wire_counters figures;
	uint64_t cpu_before_us; /* the box's CPU time when this step began */
	int overdue;
	uint64_t asked_us, began_us;
	uint64_t create_us;
	struct compile_cache_key key; /* bytes of the output of its compiler */
	int keyed, found; /* found: it was in the cache, and no compiler ran */
	struct buf made; /* the packed program, being read or written */
	const char **helper; /* the command that packs */
	uint64_t deadline_ms; /* time at which init should have ended it; 0: it waits for its box */
	/* clang-format on */
};

/* Chooses the isolation tier, after the item was parsed; team or warm_team is set. key: NULL: none. describe: tier.text
 * is wanted, for a record. -1: no tier fits. */
must_check int batch_job_choose(struct batch_job *j, struct fleet *f, const char *key,
				const struct choose_request *request, int describe, struct err *e);
/* After batch_job_choose(). The job owns the parsed item. done is never called from within this function. */
void batch_job_start(struct batch_job *j, struct fleet *f);
void batch_job_check(struct batch_job *j,
		     uint64_t now_ms);    /* called periodically: init may be stuck */
void batch_job_fini(struct batch_job *j); /* at any time: the box ends, done is not called */
