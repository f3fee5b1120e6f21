/* checkpoint_texts.h - the texts of what differs between two checkpoints, in the unified format.
 * Owns:         a box of each checkpoint in which its files are read, until the last one was read.
 * Does not own: the items of the answer, which get `text`, or null and `text_omitted`. */
#pragma once
#include "api/api.h"

struct checkpoint_texts;

/* Between checkpoint_texts_new() and checkpoint_texts_read(): a file of the answer. Reads neither side without a file. */
struct checkpoint_texts *checkpoint_texts_new(struct call *c);
/* path: without the slash at its start; size: of the larger side. */
void checkpoint_texts_add(struct checkpoint_texts *t, json_t *item, const char *path, int from,
			  int to, uint64_t size);
/* e: the boxes could not be created; t has been freed. Not called after -1 (t is freed, too) or checkpoint_texts_leave().
 * from and to are ids of checkpoints of the team of the caller. */
must_check int checkpoint_texts_read(struct checkpoint_texts *t, const char *from, const char *to,
				     void (*done)(void *ctx, const struct err *e), void *ctx,
				     struct err *e);
int checkpoint_texts_is_empty(const struct checkpoint_texts *t); /* no file would be read */
void checkpoint_texts_leave(struct checkpoint_texts *t);         /* NULL: fine */
