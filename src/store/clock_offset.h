/* clock_offset.h - how the wall clock stood to the one that never jumps, when somebody last looked.
 * Deadlines are kept as times of the wall clock, so that they mean something after a restart. When that
 * clock is set they are moved with it: what was an hour away stays an hour away. */
#pragma once
#include "store/store.h"

/* offset_ns: wall clock less time since boot. If it was another one when this boot was last looked at, by a
 * second or more, the deadlines of boxes and cells and the age of idempotency keys are moved by the
 * difference, in one transaction with the new offset: of two who notice only the first does it.
 * out_shift_ns: by how much, or 0. */
must_check int store_clocks(struct store *s, const char *boot, int64_t offset_ns,
			    int64_t *out_shift_ns, struct err *e);
