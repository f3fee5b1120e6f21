/* memory.h - process images of checkpoints: the running programs of a box, captured with its files.
 * Owns: what this server remembers about images: rows of their execs and contexts, figures; also in the store
 * (store/process_images.h) when the keeper has the image in a file. Without that, both end with their process: a checkpoint
 * with memory becomes one of files only. */
#pragma once
#include "fleet/box.h"
#include "wire/wire.h"

struct checkpoints;

struct checkpoint_start { /* of programs in a new box; owned by the caller until done is called */
	struct checkpoints *all;
	char box[ID_MAX + 1], id[ID_MAX + 1];
	struct keeper_call *asking;
	int loaded; /* its image was requested from the disk */
	void (*done)(struct checkpoint_start *s, const struct err *e);
};

/* The image is complete: remembers it with the rows of the execs that it contains. */
must_check int checkpoint_memory_add(struct checkpoints *c, const char *id,
				     const struct box *source, const struct wire_image_about *a,
				     size_t len, struct err *e);
/* The keeper has it in a file of this size. */
must_check int checkpoint_memory_keep(struct checkpoints *c, const char *id, uint64_t file_bytes,
				      struct err *e);
void checkpoint_memory_drop(struct checkpoints *c, const char *id); /* fine without one */
/* Its processes at the keeper end; its file stays. */
void checkpoint_memory_release(struct checkpoints *c, const char *id);
void checkpoint_memory_free(struct checkpoints *c);
json_t *checkpoint_memory_json(struct checkpoints *c, const char *id); /* null without one */
must_check int checkpoint_memory_check(struct checkpoints *c, const char *id, struct err *e);

/* Continues the programs of the image in a box that was created from the same checkpoint. */
void checkpoint_memory_start(struct checkpoint_start *s, struct checkpoints *c, const char *id,
			     struct box *b);
void checkpoint_memory_cancel(struct checkpoint_start *s);
