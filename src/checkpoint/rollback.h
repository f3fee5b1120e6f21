/* rollback.h - takes a box back to a checkpoint: the files change, its id, name, tokens, ports and
 * timers stay. */
#pragma once
#include "checkpoint/checkpoints.h"

struct rollback;
/* safety: id of the checkpoint of the state before; "": none was requested. */
typedef void rollback_done(void *ctx, struct box *b, const char *safety, const struct err *e);

enum {
	ROLLBACK_SAVE =
		1, /* first takes a checkpoint of the present files, so that it can be undone */
	ROLLBACK_MEMORY = 2, /* the programs of the checkpoint continue in the box */
};
/* how: the bits above. The box must be running or stopped. event: as box_replace(). */
must_check int rollback_start(struct checkpoints *c, struct box *b,
			      const struct store_checkpoint *to, unsigned how, const char *event,
			      const char *author, rollback_done *done, void *ctx,
			      struct rollback **out, struct err *e);
void rollback_leave(struct rollback *r); /* done is not called; NULL is fine */
