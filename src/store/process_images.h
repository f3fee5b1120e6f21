/* process_images.h - what a server needs to continue the programs of a checkpoint whose process image is in a file of the
 * keeper: rows of their execs and contexts, figures. The row ends with that of the checkpoint. */
#pragma once
#include "store/store.h"

/* bytes: of the file; they count as those of the checkpoint. doc: a JSON object. */
must_check int store_process_image_put(struct store *s, const char *id, uint64_t bytes,
				       const char *doc, struct err *e);
/* *out_doc: for free(). ERR_NOT_FOUND: it has none. */
must_check int store_process_image_get(struct store *s, const char *id, char **out_doc,
				       struct err *e);
must_check int store_process_image_drop(struct store *s, const char *id, struct err *e);
/* The box that is paused on the disk with it; ERR_NOT_FOUND: none. */
must_check int store_process_image_box(struct store *s, const char *id, char out_box[ID_MAX + 1],
				       struct err *e);
