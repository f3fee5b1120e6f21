/* rate.h - how many /bin/true per second each subject sustains, everything removed again. */
#pragma once

extern const int rate_workers[]; /* RATE_STEPS numbers of worker processes */

/* Measures every subject and number of workers for this many seconds, in slices that alternate. */
void rate_measure(double seconds);
