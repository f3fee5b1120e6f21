/* pause.h - pauses a box to the disk: its programs are captured with its files, and its box at the keeper ends.
 * What cannot be captured is named, and the box continues. */
#pragma once
#include "checkpoint/checkpoints.h"

/* w is called when the box is paused and survives a power failure, or with the error: then it runs. ERR_CONFLICT: it is
 * not running. Resumed by box_resume(). reason: CHECKPOINT_PAUSE or CHECKPOINT_SHUTDOWN.
 * portable: see struct checkpoint_want. */
must_check int checkpoint_pause(struct checkpoints *c, struct box *b, const char *reason,
				const char *author, int portable, struct box_wait *w,
				struct err *e);
