/* caps.h - capabilities, by raw system calls (this runs between clone and exec).
 * Owns: the table of capabilities that an image's root may keep, with the reasons. */
#pragma once
#include "base/err.h"
#include <stdint.h>

struct cap_row {
	int cap;
	const char *name, *why;
};
extern const struct cap_row
	caps_kept[]; /* the bounding set of a box: all capabilities that its root can have */
extern const unsigned caps_nkept;
uint64_t caps_kept_mask(void);
extern const struct cap_row caps_gvisor[]; /* of runsc in its outer box */
extern const unsigned caps_ngvisor;
uint64_t caps_gvisor_mask(void);

must_check int caps_bound(uint64_t keep, struct err *e); /* drop all others from the bounding set */
/* Sets permitted and effective to exactly this, inheritable and ambient to nothing; reads back. */
must_check int caps_only(uint64_t keep, struct err *e);
/* Adds to the inheritable set. Call before caps_bound(), for capabilities of init outside the
 * bounding set. */
must_check int caps_inherit(uint64_t also, struct err *e);
/* The same, but they survive the next exec of a program that is not setuid (init clears this). */
must_check int caps_over_exec(uint64_t keep, struct err *e);
must_check int caps_keep_over_setuid(struct err *e); /* PR_SET_KEEPCAPS */
must_check int caps_no_new_privs(struct err *e);
must_check int caps_read(uint64_t *permitted, uint64_t *effective, struct err *e);
