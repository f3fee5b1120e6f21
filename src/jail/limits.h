/* limits.h - resource limits of every process in a box.
 * Owns: the rlimit table. */
#pragma once
#include "base/err.h"

struct limit_row {
	int resource;
	const char *name;
	unsigned long long soft, hard;
	const char *why;
};
extern const struct limit_row limits_rows[];
extern const unsigned limits_nrows;

/* Sets each row for the caller; a hard limit that is already lower stays. No allocation. */
must_check int limits_apply(struct err *e);
