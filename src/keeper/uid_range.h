/* uid_range.h - disjoint ranges of host ids, one per box.
 * Owns: which ranges are taken. A range is given back only when the last process and file of its
 * box are gone. Keepers of one host take from different shares of them. */
#pragma once
#include "base/err.h"
#include <stdint.h>

#define RANGE_FIRST_UID 1000000u
#define RANGE_SIZE 65536u
/* Not the size: the kernel finds users by a hash in which multiples of 65,536 all meet. */
#define RANGE_STRIDE 65537u
#define RANGE_SHARES 8u
#define RANGE_PER_SHARE 8125u
#define RANGE_COUNT (RANGE_SHARES * RANGE_PER_SHARE) /* the last one ends below 2^32 */

struct uid_ranges {
	uint64_t taken[RANGE_COUNT / 64 + 1];
	uint32_t first; /* of our share */
	int lock;       /* held as long as we live: the share is ours */
	uint32_t
		next; /* where to look first: a range rests as long as possible before its next use */
};

/* Takes a share for the keeper of this run folder: the one it had, or a free one. A share is free when its
 * keeper is gone and no process has one of its ids: neither the run folder's end nor its being there says so. */
must_check int uid_range_claim(struct uid_ranges *r, const char *run_dir, struct err *e);

must_check int uid_range_take(struct uid_ranges *r, uint32_t *out_uid_base, struct err *e);
void uid_range_mark(struct uid_ranges *r,
		    uint32_t uid_base); /* found in use by a box we re-adopt */
void uid_range_free(struct uid_ranges *r, uint32_t uid_base);
