/* uid_range.h - disjoint ranges of host ids, one per box.
 * Owns: which ranges are used. A range is freed only when the last process and file of its box no
 * longer exist. Keepers of one host use different shares of the ranges. */
#pragma once
#include "base/err.h"
#include <stdint.h>

#define RANGE_FIRST_UID 1000000u
#define RANGE_SIZE 65536u
/* Not the size of a range: the kernel finds users with a hash in which multiples of
 * 65,536 collide. */
#define RANGE_STRIDE 65537u
#define RANGE_SHARES 8u
#define RANGE_PER_SHARE 8125u
#define RANGE_COUNT (RANGE_SHARES * RANGE_PER_SHARE) /* the last one ends below 2^32 */

struct uid_ranges {
	uint64_t taken[RANGE_COUNT / 64 + 1];
	uint32_t first; /* of the share of this keeper */
	int lock;       /* held as long as the keeper runs: reserves the share */
	uint32_t
		next; /* where the search starts: a range stays unused as long as possible before it
		       * is reused */
};

/* Takes a share for the keeper of this run folder: the one it had, or a free one. A share is free
 * if its keeper has exited and no process has one of its ids; whether the run folder exists does
 * not matter. */
must_check int uid_range_claim(struct uid_ranges *r, const char *run_dir, struct err *e);

must_check int uid_range_take(struct uid_ranges *r, uint32_t *out_uid_base, struct err *e);
void uid_range_mark(struct uid_ranges *r, uint32_t uid_base); /* in use by an adopted box */
void uid_range_free(struct uid_ranges *r, uint32_t uid_base);
