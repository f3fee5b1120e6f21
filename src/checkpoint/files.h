/* files.h - what is known of the files of a checkpoint: one sorted list out of the indexes of its box and of the boxes
 * before it.
 *
 * The index of a checkpoint describes the writable layer of its generation, which lies over the files of the checkpoint with which the
 * generation began, and so on; the lowest one lies over the root of the box, which no index describes. Entries: those of
 * all indexes, each over the ones below it. Names that were deleted stay as whiteouts.
 * Owns: requests for the indexes, and the list. */
#pragma once
#include "checkpoint/checkpoints.h"
#include "layer/index.h"

enum {
	CHECKPOINT_FILES_MOST = 250000, /* entries of one list */
	CHECKPOINT_FILES_DEPTH = 64,    /* generations */
};

struct checkpoint_files {
	struct checkpoint_file {
		struct layer_index_fixed f;
		size_t path; /* in text; f.path_len bytes and a NUL */
	} * v;
	size_t n, room;
	char *text;
	size_t ntext, text_room;
};
void checkpoint_files_fini(struct checkpoint_files *l);
/* Puts the index in this file over the list. ERR_LIMIT: too many entries; ERR_INVALID: it is not the index of `id`. */
must_check int checkpoint_files_add(struct checkpoint_files *l, int fd, const char *id,
				    struct err *e);

/* Whether path lies in this folder, at any depth. */
int checkpoint_files_are_below(const char *path, const char *folder);

struct checkpoint_files_load;
/* l: borrowed for the call, and may be moved out of. NULL with e. */
typedef void checkpoint_files_done(void *ctx, struct checkpoint_files *l, const struct err *e);
/* done is called later, or not at all after checkpoint_files_leave(). */
must_check int checkpoint_files_read(struct checkpoints *c, const struct store_checkpoint *x,
				     checkpoint_files_done *done, void *ctx,
				     struct checkpoint_files_load **out, struct err *e);
void checkpoint_files_leave(struct checkpoint_files_load *r); /* NULL is fine */
