/* checkpoints.h - checkpoints of the boxes of this machine: taken, kept, removed.
 * Owns:         requests to the keeper for checkpoints, the timer of retention, merges of chains.
 * Does not own: the files (the keeper), the rows (store/checkpoints.h), authorization (api/).
 *
 *   take:   row `writing` ─► CHECKPOINT ─► one transaction: row `ready`, bytes, head of the box ─► done
 *                                                          └─► CHECKPOINT_SYNC ─► `durable`
 *   remove: row `deleted`, or `failed` ─► no row or box needs its files ─► CHECKPOINT_DROP ─► no row
 *
 * A box has at most one capture at a time; further ones wait for it. */
#pragma once
#include "checkpoint/policy.h"
#include "fleet/box.h"
#include "store/checkpoints.h"

struct checkpoints;
struct checkpoint_job;

struct checkpoints_conf {
	uint64_t team_bytes; /* of all checkpoints of a team; 0: no limit */
	uint64_t per_box;    /* checkpoints of one box; 0: no limit */
};

struct checkpoints_figures {
	uint64_t taken, failed, pruned, same, merged;
	struct fleet_histogram frozen, took; /* seconds */
};

struct checkpoints *checkpoints_new(struct fleet *f, const struct checkpoints_conf *conf);
void checkpoints_free(struct checkpoints *c); /* NULL is fine */
const struct checkpoints_figures *checkpoints_figures(const struct checkpoints *c);

/* Reasons. Those of automatic ones are in policy.h; automatic ones are removed first. */
#define CHECKPOINT_MANUAL "manual"
#define CHECKPOINT_SAFETY "safety" /* before a rollback */
#define CHECKPOINT_FORK "fork"
#define CHECKPOINT_PREPARED "prepared" /* prepare.h: removed when the box changes */
#define CHECKPOINT_PROMOTE "promote"   /* of a fork whose files another box takes over */
#define CHECKPOINT_MERGED "merge"      /* of the other box, and the result */
#define CHECKPOINT_SNAPSHOT "snapshot" /* pinned, and deleted with its snapshot */
#define CHECKPOINT_PAUSE "pause"       /* of a box that is paused to the disk */
#define CHECKPOINT_SHUTDOWN                                                                        \
	"shutdown"             /* the same, because the daemon stopped: the next one resumes it */
#define CHECKPOINT_DIFF "diff" /* of the present state, for a comparison */
#define CHECKPOINT_IMPORT "import" /* of an archive */
#define CHECKPOINT_DAY_NS STORE_CHECKPOINT_DAY_NS

struct checkpoint_want { /* borrowed for the call; texts may be NULL */
	const char *name, *note, *author;
	const char *reason; /* never NULL */
	int pin;
	int durable;     /* done is called when it survives a power failure */
	int unless_same; /* if nothing has changed since the last one, done gets that one, and no
			  * further one is kept */
	int memory;      /* with the running programs: checkpoint/memory.h */
	int stop; /* memory: they stay stopped until checkpoint_memory_release(), and it fails unless their
			  * image is on the disk and survives a power failure */
	int portable; /* memory: its file has the mapped files of the host, too */
	int must_save; /* memory, durable: it fails, and nothing of it stays, unless its image is on the disk */
};

/* row: ready; NULL with e. The box may have ended meanwhile. */
typedef void checkpoint_done(void *ctx, const struct store_checkpoint *row, const struct err *e);

/* Captures the files of a running or stopped box. ERR_CONFLICT: its state or its tier does not allow
 * that, or the name is taken; ERR_SYS with EDQUOT: the quota of the team is used up. */
must_check int checkpoint_take(struct checkpoints *c, struct box *b,
			       const struct checkpoint_want *want, checkpoint_done *done, void *ctx,
			       struct checkpoint_job **out, struct err *e);
/* The same with the files of a tar archive, which is read from take_archive: the checkpoint has no parent, and the box stays as it is. */
must_check int checkpoint_import(struct checkpoints *c, struct box *b,
				 const struct checkpoint_want *want, int take_archive,
				 checkpoint_done *done, void *ctx, struct checkpoint_job **out,
				 struct err *e);
/* done is not called; the checkpoint is taken nevertheless. NULL is fine. */
void checkpoint_leave(struct checkpoint_job *j);

/* Deletes it for clients; its files are removed when nothing needs them. */
must_check int checkpoint_remove(struct checkpoints *c, const struct store_checkpoint *x,
				 struct err *e);
/* ---- use ---- */

/* The parameters of a box with these files: chain, root, layers, template. doc: the spec of the row,
 * which must live as long as out; row.root and row.env of out are not set. */
void checkpoint_fill_spec(const struct store_checkpoint *x, const json_t *doc,
			  struct box_spec *out);
json_t *checkpoint_read_spec(const struct store_checkpoint *x); /* never NULL */
