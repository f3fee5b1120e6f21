/* tier_pool.h - boxes of isolation tiers that are created in advance.
 * Owns: one pool for each tier. Its boxes are booted and their guest stubs are connected; a box that is
 * taken receives RESUME (mux sends it with PERSIST) and its limits. A pool is filled after the second
 * request for its tier within two minutes, and emptied when no client has requested the tier for a
 * while, when memory is short, or when the tier is not offered any longer. */
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
struct keeper_box *tier_pool_take(struct keeper *k, const struct wire_create *w,
				  const struct wire_limits *limits);
void tier_pool_created(struct keeper *k, struct keeper_box *b);
void tier_pool_failed(struct keeper *k, struct keeper_box *b, const struct err *e);
must_check int tier_pool_refill(struct keeper *k, uint64_t now, struct err *e);
void tier_pool_maintain(struct keeper *k); /* called periodically */
void tier_pool_end_all(struct keeper *k);
