/* wallclock.h - the wall clock, and moving deadlines when it is set.
 * Owns: the offset between the wall clock and the time since boot.
 *
 * fleet_now_ns() is that offset plus the time since boot: it cannot jump between two checks, so
 * times computed with it are consistent. A check that finds the clock set moves every deadline by
 * the same amount, here and in the store, and only then changes the offset. */
#pragma once
#include <stdint.h>

struct fleet;

int64_t fleet_now_ns(void); /* wall clock, for rows */
/* Called before boxes are restored (the clock may have been set while no server ran), and once a
 * second. */
void fleet_check_clock(struct fleet *f);
