/* netns_pool.h - network namespaces that are created in advance, and reused if they are verified
 * clean.
 * Owns:         pooled namespaces. That of a box is in its keeper_box while the box runs.
 * Does not own: what "clean" means; that is in jail/net.h.
 *
 *              take                       put                   a moment later, clean
 *   ready ──────────────►  a box  ──────────────►  resting  ──────────────────────────►  ready
 *                                                    └─ any difference: closed, which destroys it
 *
 * A network namespace is a third of the cost of a box: a quarter of a millisecond to create, and as
 * much to destroy. Most programs never open a socket, and their namespace is still clean. Builder
 * threads take, the loop returns: this module has its own lock. */
#pragma once
#include "base/err.h"

struct netns_pool;
struct net; /* a namespace and, if there are few boxes, its open files */

/* NULL if the host does not allow it: then each box creates its own with its other namespaces.
 * open_most: how many may have open files, nine each. */
struct netns_pool *netns_pool_new(int proc, unsigned open_most);
void netns_pool_free(struct netns_pool *n); /* no box may use one */
int net_ns(const struct net *t);            /* JAIL_FD_HIGH or above */
void netns_free(struct net *t);             /* fine on NULL */
/* NULL on error. out_clean: it is new or verified clean; 0 only if `unchecked`, see
 * netns_pool_put(). */
must_check struct net *netns_pool_take(struct netns_pool *n, int unchecked, int *out_clean,
				       struct err *e);
/* Returns a namespace without processes. unchecked: test builds only, see jail_trusts_network(). */
void netns_pool_put(struct netns_pool *n, struct net *take_t, int unchecked);
/* Maintains the pool: verifies returned namespaces, creates some, releases surplus ones. On a
 * builder thread. */
void netns_pool_maintain(struct netns_pool *n);
/* Time in ms until maintenance is needed; -1: not before one is returned or taken. */
int netns_pool_next_ms(struct netns_pool *n);
