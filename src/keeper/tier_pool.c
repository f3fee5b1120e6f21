/* tier_pool.c - see tier_pool.h. On the loop's thread. */
#include "keeper/tier_pool.h"
#include "base/clock.h"
#include "keeper/keeper_internal.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND 1000000000ull
#define TIER_POOL_IDLE_NS (120 * SECOND)
#define TIER_POOL_EVICT_NS (20 * SECOND) /* then it may have another disk */
#define TIER_POOL_RETRY_NS (5 * SECOND)
#define TIER_POOL_WAKE_MS 5000
#define TIER_POOL_PYTHON_BYTES (96u << 20)

static void tier_pool_empty(struct keeper *k, struct tier_pool *p)
{
	struct keeper_box *b;

	p->boxes.depth = 0;
	while ((b = p->boxes.first) != NULL) {
		pool_drop(k, b);
		teardown_kill(k, b);
	}
}

void tier_pool_end(struct keeper *k, unsigned tier)
{
	for (unsigned kind = 0; kind < WARM_KINDS; kind++)
		tier_pool_empty(k, &k->tier_pools[tier][kind]);
}

void tier_pool_end_all(struct keeper *k)
{
	for (unsigned i = 0; i < WIRE_TIER_COUNT; i++)
		tier_pool_end(k, i);
}

struct tier_pool *tier_pool_of(struct keeper *k, const struct keeper_box *b)
{
	return &k->tier_pools[b->meta.about.tier][b->of_tier_pool - 1];
}

/* Can boxes with this memory have an interpreter that their client did not request? The engine must be one that boots: in others
 * an interpreter starts as quickly as on the host. */
static int tier_pool_has_room(unsigned tier, const struct wire_limits *limits)
{
	return tier_table[tier].start_ms && limits->mem_bytes >= TIER_POOL_PYTHON_BYTES;
}

/* The interpreter that waits in boxes of this kind, or NULL: none, or it is not installed. */
static const struct warm_start *tier_pool_starts(const struct keeper *k, unsigned tier,
						 unsigned kind, const struct wire_limits *limits)
{
	const struct warm_start *s = &warm_kinds[kind].in_engine;
	char path[64];

	if (k->tiers.facts[tier].unsupported & UINT64_C(1) << WIRE_NEED_ZYGOTE || !s->program ||
	    (!kind && !tier_pool_has_room(tier, limits)))
		return NULL;
	/* The keeper has the host's /usr at /u. */
	snprintf(path, sizeof(path), "/u%s", s->program + strlen("/usr"));
	return access(path, X_OK) == 0 ? s : NULL;
}

/* The pool for a request of this interpreter; 0: that of all other requests. */
static unsigned tier_pool_kind(const struct keeper *k, unsigned tier, const char *name)
{
	unsigned kind = WARM_KINDS;

	while (--kind && strncmp(warm_kinds[kind].name, name, WIRE_WARM_NAME) != 0)
		;
	return kind && tier_pool_starts(k, tier, kind, NULL) ? kind : 0;
}

/* Limits of cgroups are written when a client gets a box. The disk is mounted already, and a tier
 * whose limits cannot be changed has its memory. */
static int tier_pool_fits(const struct keeper *k, unsigned tier, const struct tier_pool *p,
			  const struct wire_limits *want)
{
	const struct wire_limits *have = &p->limits;
	int fixed = !!(k->tiers.facts[tier].unsupported & UINT64_C(1) << WIRE_NEED_LIMIT);

	if (have->disk_bytes != want->disk_bytes || have->disk_files != want->disk_files ||
	    keeper_box_disk_in_memory(have) != keeper_box_disk_in_memory(want))
		return 0;
	/* An interpreter that waits would take most of a small limit. */
	if (tier_pool_has_room(tier, have) && !tier_pool_has_room(tier, want))
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

static struct keeper_box *tier_pool_drop(struct keeper *k, struct keeper_box *b)
{
	pool_drop(k, b);
	b->of_tier_pool = 0;
	return b;
}

/* The first box of the pool has not ended. An engine may be killed while its box waits, and the loop learns of it later. */
static void tier_pool_drop_ended(struct keeper *k, struct tier_pool *p)
{
	struct keeper_box *b;

	while ((b = p->boxes.first) != NULL) {
		struct pollfd at = { .fd = b->init };

		if (poll(&at, 1, 0) <= 0 || !(at.revents & POLLHUP))
			return;
		teardown_kill(k, tier_pool_drop(k, b));
	}
}

/* Counts the request, and gives an unused pool the limits of this request. */
static void tier_pool_requested(struct keeper *k, unsigned tier, struct tier_pool *p,
				const struct wire_limits *limits)
{
	uint64_t now = now_ns();

	if (!tier_pool_fits(k, tier, p, limits) && !p->boxes.making &&
	    (!p->boxes.pooled || now - p->asked_ns > TIER_POOL_EVICT_NS)) {
		tier_pool_empty(k, p);
		p->limits = *limits;
	}
	if (!tier_pool_fits(k, tier, p, limits))
		return;
	/* An engine takes memory: a tier that is used once has no pool. */
	if (p->asked_ns)
		p->boxes.depth = TIER_POOL_DEPTH;
	p->asked_ns = now;
	keeper_wake_in(k, TIER_POOL_WAKE_MS);
	pool_stay_quiet(k);
}

struct keeper_box *tier_pool_take(struct keeper *k, const struct wire_create *w,
				  const struct wire_limits *limits)
{
	unsigned tier = wire_tier_of(w->head.flags), kind = tier_pool_kind(k, tier, w->warm);
	struct tier_pool *p = &k->tier_pools[tier][kind];

	if (!tier_pool_can_serve(k, w))
		return NULL;
	tier_pool_requested(k, tier, p, limits);
	tier_pool_drop_ended(k, p);
	/* Without its interpreter a booted box is still faster than a new one. */
	if (!p->boxes.first) {
		p = &k->tier_pools[tier][0];
		tier_pool_drop_ended(k, p);
	}
	if (!p->boxes.first || !tier_pool_fits(k, tier, p, limits))
		return NULL;
	return tier_pool_drop(k, p->boxes.first);
}

void tier_pool_created(struct keeper *k, struct keeper_box *b)
{
	unsigned tier = b->meta.about.tier, kind = b->of_tier_pool - 1;
	const struct warm_start *how = tier_pool_starts(k, tier, kind, &tier_pool_of(k, b)->limits);
	struct err e;

	tier_pool_of(k, b)->boxes.making--;
	k->pool_making--;
	if (how && build_start_interpreter(b, how, &e) < 0) {
		tier_pool_died(k, b);
		pool_log(k, "pool", &e);
		teardown_kill(k, b);
		return;
	}
	b->meta.about.warm = how != NULL;
	pool_add(k, b);
}

void tier_pool_died(struct keeper *k, const struct keeper_box *b)
{
	tier_pool_of(k, b)->retry_ns = now_ns() + TIER_POOL_RETRY_NS;
}

void tier_pool_failed(struct keeper *k, struct keeper_box *b, const struct err *e)
{
	tier_pool_of(k, b)->boxes.making--;
	k->pool_making--;
	tier_pool_died(k, b);
	pool_log(k, "pool", e);
}

static int tier_pool_add_one(struct keeper *k, unsigned tier, unsigned kind, struct err *e)
{
	struct tier_pool *p = &k->tier_pools[tier][kind];
	struct build_job *j = build_job_new(BUILD_BOX);

	j->for_pool = 1;
	j->make.facts = tier_facts_copy(k, tier);
	if (pool_begin(k, j, &p->limits, k->host.cgroups.version != 0, e) < 0) {
		free(j->make.facts);
		free(j);
		return -1;
	}
	j->make.box->of_tier_pool = 1 + kind;
	p->boxes.making++;
	k->pool_making++;
	return 0;
}

static int tier_pool_refill_one(struct keeper *k, unsigned tier, unsigned kind, uint64_t now,
				struct err *e)
{
	const struct tier_pool *p = &k->tier_pools[tier][kind];

	if (now < p->retry_ns || k->tiers.facts[tier].state != WIRE_TIER_OFFERED)
		return 0;
	while (p->boxes.pooled + p->boxes.making < p->boxes.depth)
		if (tier_pool_add_one(k, tier, kind, e) < 0)
			return -1;
	return 0;
}

int tier_pool_refill(struct keeper *k, uint64_t now, struct err *e)
{
	for (unsigned i = 0; i < WIRE_TIER_COUNT * WARM_KINDS; i++)
		if (tier_pool_refill_one(k, i / WARM_KINDS, i % WARM_KINDS, now, e) < 0)
			return -1;
	return 0;
}

void tier_pool_maintain(struct keeper *k)
{
	uint64_t now = now_ns();
	int low = -1;

	if (now < k->tier_maintain_ns)
		return;
	for (unsigned i = 0; i < WIRE_TIER_COUNT * WARM_KINDS; i++) {
		unsigned tier = i / WARM_KINDS;
		struct tier_pool *p = &k->tier_pools[tier][i % WARM_KINDS];

		if (!p->asked_ns)
			continue;
		keeper_wake_in(k, TIER_POOL_WAKE_MS);
		low = low < 0 ? warm_pool_memory_is_low(k) : low;
		if (low || now - p->asked_ns > TIER_POOL_IDLE_NS ||
		    k->tiers.facts[tier].state != WIRE_TIER_OFFERED)
			tier_pool_empty(k, p);
		if (now - p->asked_ns > TIER_POOL_IDLE_NS)
			p->asked_ns = 0;
	}
	k->tier_maintain_ns = now + TIER_POOL_WAKE_MS * 1000000ull;
}
