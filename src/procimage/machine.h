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
	uint64_t monotonic_ns;
};

must_check int machine_read(struct machine *m, struct err *e);
/* Whether programs of `was` can continue on `now`. */
must_check int machine_check(const struct machine *was, const struct machine *now, struct err *e);
