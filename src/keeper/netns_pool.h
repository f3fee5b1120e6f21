/* netns_pool.h - network namespaces made before they are asked for, and used again when they are as new.
 * Owns:         those that wait. A box's own is in its kbox while it lives.
 * Does not own: what "as new" means; that is jail/net.h.
 *
 *              take                       give                  a moment later, as new
 *   ready ──────────────►  a box  ──────────────►  resting  ──────────────────────────►  ready
 *                                                    └─ anything is different: closed, and with it gone
 *
 * A network namespace is a third of what a box costs: a quarter of a millisecond to make, as much to
 * take apart. Most programs never open a socket, and theirs is then as good as a new one. Makers take,
 * the loop gives: it locks for itself. */
#pragma once
#include "base/err.h"

struct nets;
struct net; /* one of them, and while few boxes have one, the files that tell of it */

/* NULL where it cannot be done: then each box makes its own with the rest of its namespaces. open_most: so
 * many may have their files open, nine each. */
struct nets *netns_pool_new(int proc, unsigned open_most);
void netns_pool_free(struct nets *n); /* none is a box's */
int net_ns(const struct net *t);      /* JAIL_FD_HIGH or above */
void netns_free(struct net *t);       /* fine on NULL */
/* NULL on error. out_as_new: it is new, or as new; 0 only if `unchecked`, see netns_pool_put(). */
must_check struct net *netns_pool_take(struct nets *n, int unchecked, int *out_as_new,
				       struct err *e);
/* Nobody is in it any more. unchecked: test builds only, see jail_trusts_network(). */
void netns_pool_put(struct nets *n, struct net *take_t, int unchecked);
/* Looks after those that wait: tests the rested, makes some, lets go of what was a rush. On a maker. */
void netns_pool_maintain(struct nets *n);
/* In how many ms there will be something to tend; -1: not until one is given or taken. */
int netns_pool_next_ms(struct nets *n);
