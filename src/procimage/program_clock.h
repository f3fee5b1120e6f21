/* program_clock.h - the clocks CLOCK_MONOTONIC and CLOCK_BOOTTIME of programs that continue on another boot of the machine,
 * where those of the kernel have begun again: a time namespace, so that they do not go back.
 * Owns: nothing; the namespace lives as long as its descriptor and the processes in it. */
#pragma once
#include "base/err.h"
#include <stdint.h>
#include <sys/types.h>

struct program_clock { /* what the programs have more than the caller; 0: they have its clocks */
	int64_t monotonic_ns, boottime_ns;
};

/* Of a process. All zero where the kernel has no time namespaces. */
must_check int program_clock_read(pid_t pid, struct program_clock *out, struct err *e);
/* Returns a time namespace, for setns() in a process without threads. The caller needs no right over the clock of the
 * host: the namespace belongs to a user namespace that nothing else is in. */
must_check int program_clock_open(const struct program_clock *c, struct err *e);
