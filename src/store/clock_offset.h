/* clock_offset.h - the offset between the wall clock and the monotonic clock at the last check.
 * Deadlines are stored as times of the wall clock, so that they are valid after a restart. When
 * that clock is set, they are moved with it: a deadline in one hour stays one hour away. */
#pragma once
#include "store/store.h"

/* offset_ns: wall clock less time since boot. If it differs by a second or more from the stored
 * offset of this boot, the deadlines of boxes and cells and the age of idempotency keys are
 * moved by the difference, in one transaction with the new offset: of two processes that notice,
 * only the first does it. out_shift_ns: the difference, or 0. */
must_check int store_clocks(struct store *s, const char *boot, int64_t offset_ns,
			    int64_t *out_shift_ns, struct err *e);
