/* direct.h - events of one webhook that wait in memory, while its receiver works.
 * Owns: the deliveries. Pure: it has no store, no time and no connections.
 *
 * A delivery leaves the queue when its arrival is stored. Until then the next one of its box waits: a server that is
 * killed repeats the last event of a box, and never one before it. */
#pragma once
#include "store/webhooks.h"

enum { DIRECT_MOST = 512, DIRECT_STORED = 64, DIRECT_QUICK_MS = 50 };

enum direct_state { DIRECT_WAITING, DIRECT_SENDING, DIRECT_ARRIVED };

struct direct_item {
	struct store_delivery d;
	uint32_t box; /* hash */
	enum direct_state state;
	int is_blocked; /* an older one of its box is in the queue */
};

struct direct {
	struct direct_item *v[DIRECT_MOST]; /* the oldest first */
	unsigned n, arrived;                /* arrived: since the last direct_stored() */
};

void direct_add(struct direct *q, struct store_delivery *take); /* n < DIRECT_MOST */
/* The oldest one that may be sent now, or NULL. */
struct direct_item *direct_next(const struct direct *q);
struct direct_item *direct_find(const struct direct *q, int64_t seq);
void direct_arrived(struct direct *q, struct direct_item *it);
/* All events up to this number have arrived; seen: the last event that was looked at. */
int64_t direct_until(const struct direct *q, int64_t seen);
/* Arrivals up to this number are stored: removes them. */
void direct_stored(struct direct *q, int64_t until);
void direct_fini(struct direct *q); /* q is empty again */
