/* prepare.h - the process image that a box with `checkpoints {"prepare": true}` has ready, so that a fork with memory copies
 * nothing.
 * Owns:         for each such box the last image, and what is known of the box since.
 * Does not own: the checkpoint of that moment (checkpoints.h), the copies (memory.h).
 *
 *   idle for a second ─► checkpoint with memory ─► ready ──request, or processor time──► dropped, idle again ...
 *                                                   └─ fork ─► copies of that moment
 *
 * Ready means: since its moment no request has changed the box, and its programs have used no processor time. */
#pragma once
#include "fleet/box.h"

struct checkpoints;

/* One request for the image of a box; owned by the caller, until done is called or it is cancelled. */
struct checkpoint_prepared {
	struct checkpoints *all;
	struct keeper_call *asking;
	char box[ID_MAX + 1], id[ID_MAX + 1];
	uint64_t age_ms; /* since the moment of the image */
	/* id: a checkpoint with an image of which copies can be made; checkpoint_prepared_leave() must follow. NULL: none,
	 * with the reason. Never called from within checkpoint_prepared_find(). */
	void (*done)(struct checkpoint_prepared *x, const char *id, const char *why);
};
/* For a fork that holds the box. 0: the box has no prepared image, with the reason; "": it is to have none. */
int checkpoint_prepared_find(struct checkpoint_prepared *x, struct checkpoints *c,
			     const struct box *b, const char **out_why);
void checkpoint_prepared_cancel(
	struct checkpoint_prepared *x); /* fine on one that is not waiting */
void checkpoint_prepared_leave(struct checkpoints *c, const char *id); /* its copies exist */

void checkpoint_prepare_turn(struct checkpoints *c); /* once a second */
void checkpoint_prepare_free(struct checkpoints *c);
