/* machine.h - what a program has found out about its machine when it started, and relies on: an image that was written on
 * another boot, kernel or processor continues only where all of it is there. */
#pragma once
#include "base/err.h"
#include <stdint.h>

enum { MACHINE_FEATURES = 10 };

struct machine {
	char boot[40];    /* id of the boot */
	char release[72]; /* of the kernel */
	uint8_t vdso[16]; /* a hash of the code of the kernel that is mapped in every process */
	uint64_t feature[MACHINE_FEATURES]; /* of the processor, as bits */
	uint64_t monotonic_ns, raw_ns, boottime_ns;
};

struct program_clock;

/* boot: the id of this boot. */
must_check int machine_read(struct machine *m, const char *boot, struct err *e);
/* Whether programs of `was` can continue on `now`. */
must_check int machine_check(const struct machine *was, const struct machine *now, struct err *e);
/* Then its code, which is mapped in every process, is another one (vdso.h). */
int machine_is_other_kernel(const struct machine *was, const struct machine *now);
/* What programs of `was` have more than the clocks of `now`, if the machine has booted in between; else as before: then the time in
 * between counts for them. Neither clock goes back. */
void machine_continue_clock(const struct machine *was, const struct machine *now,
			    struct program_clock *clock);
