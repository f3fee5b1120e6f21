/* tier_pool.c - see tier_pool.h. On the loop's thread. */
#include "keeper/tier_pool.h"
#include "base/clock.h"
#include "keeper/keeper_internal.h"

#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000ull
#define TIER_POOL_IDLE_NS (120 * SECOND)
#define TIER_POOL_EVICT_NS (20 * SECOND) /* then it may have another disk */
#define TIER_POOL_RETRY_NS (5 * SECOND)
#define TIER_POOL_WAKE_MS 5000

static void tier_pool_empty(struct keeper *k, struct tier_pool *p)
{
	struct keeper_box *b;

	p->boxes.depth = 0;
	while ((b = p->boxes.first) != NULL) {
		pool_drop(k, b);
		teardown_kill(k, b);
	}
}

void tier_pool_end_all(struct keeper *k)
{
	for (unsigned i = 0; i < WIRE_TIER_COUNT; i++)
		tier_pool_empty(k, &k->tier_pools[i]);
}

/* Limits of cgroups are written when a client gets a box. The disk is mounted already, and a tier
 * whose limits cannot be changed has its memory. */
static int tier_pool_fits(const struct keeper *k, unsigned tier, const struct wire_limits *want)
{
	const struct wire_limits *have = &k->tier_pools[tier].limits;
	int fixed = !!(k->tiers.facts[tier].unsupported & UINT64_C(1) << WIRE_NEED_LIMIT);

	if (have->disk_bytes != want->disk_bytes || have->disk_files != want->disk_files ||
	    keeper_box_disk_in_memory(have) != keeper_box_disk_in_memory(want))
		return 0;
	return !fixed || memcmp(have, want, sizeof(*have)) == 0;
}

static int tier_pool_can_serve(const struct keeper *k, const struct wire_create *w)
{
	const uint16_t own = WIRE_CREATE_COLD | WIRE_CREATE_IDLE | WIRE_CREATE_SECRETS |
			     WIRE_CREATE_HOST_WRITABLE;

	return k->pool_depth && tier_has_guest(wire_tier_of(w->head.flags)) &&
	       !(w->head.flags & own) && !w->without && !w->zygote_without && !w->nmounts &&
	       !w->nlayers && !w->root[0];
}

struct keeper_box *tier_pool_take(struct keeper *k, const struct wire_create *w,
				  const struct wire_limits *limits)
{
	unsigned tier = wire_tier_of(w->head.flags);
	struct tier_pool *p = &k->tier_pools[tier];
	uint64_t now = now_ns();
	struct keeper_box *b;

	if (!tier_pool_can_serve(k, w))
		return NULL;
	if (!tier_pool_fits(k, tier, limits) && !p->boxes.making &&
	    (!p->boxes.pooled || now - p->asked_ns > TIER_POOL_EVICT_NS)) {
		tier_pool_empty(k, p);
		p->limits = *limits;
	}
	if (!tier_pool_fits(k, tier, limits))
		return NULL;
	/* An engine takes memory: a tier that is used once has no pool. */
	if (p->asked_ns)
		p->boxes.depth = TIER_POOL_DEPTH;
	p->asked_ns = now;
	keeper_wake_in(k, TIER_POOL_WAKE_MS);
	b = p->boxes.first;
	if (b) {
		pool_drop(k, b);
		b->of_tier_pool = 0;
	}
	pool_stay_quiet(k);
	return b;
}

void tier_pool_created(struct keeper *k, struct keeper_box *b)
{
	k->tier_pools[b->meta.about.tier].boxes.making--;
	k->pool_making--;
	pool_add(k, b);
}

void tier_pool_failed(struct keeper *k, struct keeper_box *b, const struct err *e)
{
	struct tier_pool *p = &k->tier_pools[b->meta.about.tier];

	p->boxes.making--;
	k->pool_making--;
	p->retry_ns = now_ns() + TIER_POOL_RETRY_NS;
	pool_log(k, "pool", e);
}

static int tier_pool_add_one(struct keeper *k, unsigned tier, struct err *e)
{
	struct build_job *j = build_job_new(BUILD_BOX);

	j->for_pool = 1;
	j->make.facts = tier_facts_copy(k, tier);
	if (pool_begin(k, j, &k->tier_pools[tier].limits, k->host.cgroups.version != 0, e) < 0) {
		free(j->make.facts);
		free(j);
		return -1;
	}
	j->make.box->of_tier_pool = 1;
	k->tier_pools[tier].boxes.making++;
	k->pool_making++;
	return 0;
}

int tier_pool_refill(struct keeper *k, uint64_t now, struct err *e)
{
	for (unsigned i = 0; i < WIRE_TIER_COUNT; i++) {
		struct tier_pool *p = &k->tier_pools[i];

		if (now < p->retry_ns || k->tiers.facts[i].state != WIRE_TIER_OFFERED)
			continue;
		while (p->boxes.pooled + p->boxes.making < p->boxes.depth)
			if (tier_pool_add_one(k, i, e) < 0)
				return -1;
	}
	return 0;
}

void tier_pool_maintain(struct keeper *k)
{
	uint64_t now = now_ns();
	int low = -1;

	if (now < k->tier_maintain_ns)
		return;
	for (unsigned i = 0; i < WIRE_TIER_COUNT; i++) {
		struct tier_pool *p = &k->tier_pools[i];

		if (!p->asked_ns)
			continue;
		keeper_wake_in(k, TIER_POOL_WAKE_MS);
		low = low < 0 ? warm_pool_memory_is_low(k) : low;
		if (low || now - p->asked_ns > TIER_POOL_IDLE_NS ||
		    k->tiers.facts[i].state != WIRE_TIER_OFFERED)
			tier_pool_empty(k, p);
		if (now - p->asked_ns > TIER_POOL_IDLE_NS)
			p->asked_ns = 0;
	}
	k->tier_maintain_ns = now + TIER_POOL_WAKE_MS * 1000000ull;
}
