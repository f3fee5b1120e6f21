/* snapshots.h - E2B's snapshots and forks: the files of a box, in other boxes. */
#pragma once
#include "api/fields.h"
#include "v1box/snapshots.h"
#include "e2b/e2b.h"

extern const struct field e2b_snapshot_fields[], e2b_fork_fields[];
void e2b_snapshot_create(struct call *c); /* POST /sandboxes/{box}/snapshots */
void e2b_snapshot_list(struct call *c);   /* GET /snapshots */
/* DELETE /templates/{id} of a snapshot. 0: it names none, and nothing was answered. */
int e2b_snapshot_delete(struct call *c, const char *id);
void e2b_fork(struct call *c); /* POST /sandboxes/{box}/fork */

/* For create: is this templateID a snapshot of the caller's team? 1: out is it, and when the box
 * is made snapshots_fill(c, b, out->id, done) must be called before the answer. */
int e2b_snapshot_want(struct call *c, const char *template_id, struct store_snapshot *out);
