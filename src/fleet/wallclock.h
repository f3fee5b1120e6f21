/* wallclock.h - the wall clock, and what becomes of deadlines when somebody sets it.
 * Owns: how far it is from the time since boot.
 *
 * fleet_now_ns() is that distance and the time since boot: between two looks it cannot jump, so
 * what is computed with it fits together. A look that finds the clock set moves every deadline by as
 * much, here and in the store, and only then is the new time told. */
#pragma once
#include <stdint.h>

struct fleet;

int64_t fleet_now_ns(void); /* wall clock, for rows */
/* Before anything is restored (the clock may have been set while nobody was here), and once a second. */
void fleet_check_clock(struct fleet *f);
