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
struct nets *nets_new(int proc, unsigned open_most);
void nets_free(struct nets *n); /* none is a box's */
int net_ns(const struct net *t); /* JAIL_FD_HIGH or above */
void net_free(struct net *t);    /* fine on NULL */
/* NULL on error. out_as_new: it is new, or as new; 0 only if `unchecked`, see nets_give(). */
must_check struct net *nets_take(struct nets *n, int unchecked, int *out_as_new, struct err *e);
/* Nobody is in it any more. unchecked: test builds only, see jail_trusts_network(). */
void nets_give(struct nets *n, struct net *take_t, int unchecked);
/* Looks after those that wait: tests the rested, makes some, lets go of what was a rush. On a maker. */
void nets_tend(struct nets *n);
/* In how many ms there will be something to tend; -1: not until one is given or taken. */
int nets_due(struct nets *n);
