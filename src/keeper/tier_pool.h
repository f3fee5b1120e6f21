/* tier_pool.h - boxes of isolation tiers that are created in advance.
 * Owns: for each tier a pool for all requests, and one for each kind of warm interpreter. The boxes are
 * booted and their guest stubs are connected; an interpreter was started by init inside, so a later
 * request finds it loaded. In engines that boot, Python waits in the boxes of the first pool as well. mux sends RESUME with the first frame: that of the
 * interpreter, or PERSIST when a client gets the box. A pool is filled after the second request for it
 * within two minutes, and emptied when it was not requested for a while, when memory is short, when the
 * engine has changed, or when the tier is not offered any longer. */
#pragma once
#include "base/err.h"
#include "keeper/root_pool.h"
#include "wire/wire.h"
#include <stdint.h>

enum { TIER_POOL_DEPTH = 2 };

struct tier_pool {
	struct pool_class boxes;
	struct wire_limits limits; /* of its boxes; the disk cannot be changed */
	uint64_t asked_ns;         /* the last request; 0: none */
	uint64_t retry_ns;         /* no box before this time: the last one failed */
};

/* A pooled box for this request, or NULL. Called for each request of a tier. */
struct tier_pool *tier_pool_of(struct keeper *k, const struct keeper_box *b);
struct keeper_box *tier_pool_take(struct keeper *k, const struct wire_create *w,
				  const struct wire_limits *limits);
void tier_pool_created(struct keeper *k, struct keeper_box *b);
void tier_pool_died(struct keeper *k, const struct keeper_box *b); /* while it was pooled */
void tier_pool_failed(struct keeper *k, struct keeper_box *b, const struct err *e);
must_check int tier_pool_refill(struct keeper *k, uint64_t now, struct err *e);
void tier_pool_maintain(struct keeper *k); /* called periodically */
void tier_pool_end(struct keeper *k, unsigned tier);
void tier_pool_end_all(struct keeper *k);
