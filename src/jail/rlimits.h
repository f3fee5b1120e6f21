/* rlimits.h - resource limits of every process in a box.
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

/* Sets each row for the caller; a hard limit that is already lower stays. A core limit of 0 is
 * refused where the host pipes core dumps to a handler. No allocation. */
must_check int limits_apply(struct err *e);
/* kernel.core_pattern names a program or a socket, not a file; also if it cannot be read. */
int limits_core_has_handler(void);
