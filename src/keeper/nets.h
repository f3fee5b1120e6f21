/* nets.h - network namespaces made before they are asked for, and used again when they are as new.
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

/* NULL where it cannot be done: then each box makes its own with the rest of its namespaces. */
struct nets *nets_new(int proc);
void nets_free(struct nets *n);
/* out_as_new: it is new, or as new; 0 in test builds only, see nets_give(). */
must_check int nets_take(struct nets *n, int *out_as_new, struct err *e);
/* Nobody is in it any more. unchecked: test builds only, see jail_trusts_network(). */
void nets_give(struct nets *n, int take_ns, int unchecked);
/* Looks after those that wait: tests the rested, makes some, lets go of what was a rush. On a maker. */
void nets_tend(struct nets *n);
/* In how many ms there will be something to tend; -1: not until one is given or taken. */
int nets_due(struct nets *n);
