/* combine.h - merges the files of another box into those of a box: a third checkpoint, to which the box then goes.
 *
 *   lists of ancestor, ours, theirs ─► plan (three_way.h) ─► row `writing` ─► CHECKPOINT_MERGE with an index ─► row `ready`
 *
 * Owns: the requests, the row of the new checkpoint, the plan. */
#pragma once
#include "checkpoint/three_way.h"

struct combine;
struct combine_result {
	char ancestor[ID_MAX + 1];
	const struct checkpoint_plan *plan;
	const struct store_checkpoint *row; /* NULL: conflicts, or nothing to do */
};
/* r: until it returns. */
typedef void combine_done(void *ctx, const struct combine_result *r, const struct err *e);

/* ours: the last checkpoint of the running generation of b; theirs: ready. ERR_CONFLICT: they have no ancestor in common. */
must_check int combine_start(struct checkpoints *c, const struct box *b,
			     const struct store_checkpoint *ours,
			     const struct store_checkpoint *theirs, enum checkpoint_conflicts how,
			     const char *author, combine_done *done, void *ctx,
			     struct combine **out, struct err *e);
void combine_leave(struct combine *m); /* done is not called; NULL is fine */
