/* rate.h - how many /bin/true per second each subject sustains, everything removed again. */
#pragma once

extern const int rate_workers[]; /* RATE_STEPS numbers of worker processes */

/* So many seconds for every subject and number of workers, in slices by turns. */
void rate_measure(double seconds);
