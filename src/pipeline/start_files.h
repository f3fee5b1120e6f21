/* start_files.h - the files with which the boxes of a pipeline start: those of the box that its task names.
 * Owns:         in struct pipeline, the request for the checkpoint, and what is known of it.
 * Does not own: the checkpoint, which expires like that of a fork (checkpoint/).
 *
 *   attempt ─► checkpoint of task.box ─► each box of the attempt, of all rivals and of the repair: a copy of its files
 *                    └─ not possible: the boxes start without files, and the result states why */
#pragma once
#include "batch/item.h"
#include "store/store.h"

struct pipeline;
struct start_files { /* zero: none were requested yet */
	struct checkpoint_job *job;
	void (*then)(struct pipeline *p);
	char checkpoint[ID_MAX + 1]; /* "": none */
	char why[240];               /* there is none, although the task names a box */
	json_t *env;                 /* variables of the box; NULL: none */
};

/* Takes the checkpoint for this attempt; then() is called once, perhaps at once. */
void start_files_take(struct pipeline *p, void (*then)(struct pipeline *p));
/* The checkpoint that this result names: after a restart of the server. */
void start_files_of_result(struct pipeline *p, const json_t *result);
/* `from` of a result: {box, checkpoint, why}; NULL: the task names no box. */
json_t *start_files_json(const struct pipeline *p);
void start_files_fini(struct pipeline *p);

/* The files and the variables of a checkpoint. -1: it no longer exists, or programs of pipelines cannot start with its
 * files. out_env: NULL is stored if it has none. */
must_check int start_files_read(struct store *s, const char *team, const char *checkpoint,
				struct batch_files *out, json_t **out_env, struct err *e);
