/* leaving.h - boxes that leave a node which drains with `move`: which box leaves next, and the end of those that have left.
 * Owns:         the requests to the node; when a request that failed is repeated.
 * Does not own: copies of the last snapshots and the start elsewhere (copies.c, restart.h).
 *
 *   `may_leave`, and another node takes boxes -> POST /cluster/leave: the node packs the box
 *   `leaving`, and another node has a copy of that snapshot -> start()
 *   `leaving`, and the box was moved and lives there -> POST /cluster/left
 *
 * Every gateway does this: the node refuses what is in progress, and the coordinator decides which node has a box. */
#pragma once
#include "gateway/copies.h"
#include "gateway/copies_lists.h"

struct leaving;
/* start(): `want` is the row of the box in the list of the node `from`, which has this epoch. */
struct leaving *leaving_new(const struct gateway_copies_conf *conf, struct copies_lists *lists,
			    void (*start)(void *user, unsigned from, int64_t epoch,
					  const json_t *want),
			    void *user);
void leaving_free(struct leaving *x); /* allowed on NULL */
void leaving_plan(struct leaving *x); /* once a second, or after a list has changed */
