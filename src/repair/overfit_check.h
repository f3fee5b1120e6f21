/* overfit_check.h - do the examples say what a repair has to be, or would they have let another one through?
 * Owns: its box (on a leash) while it looks.
 *
 * Whatever else could stand at the changed place is tried with all examples. One that passes them, and that
 * does something else with inputs that nobody gave, is a doubt: then nothing tells which of the two is
 * right. What the box says is hearsay, as in a search: a program that lies here deceives nobody but
 * whoever gave it to us, and about nothing but a word. */
#pragma once
#include "repair/edit.h"
#include "repair/candidate_box.h"

enum { OVERFIT_CHECK_REASON = 240 };

struct overfit_check {
	const struct candidate_box *candidate_box; /* the owner's */
	/* why: what speaks against it; "": nothing. Once, perhaps from within overfit_check_start(): it notes the
	 * answer and looks at it later. */
	void (*done)(struct overfit_check *d, const char *why);
	struct batch_job job;
	int flying;
	char why[OVERFIT_CHECK_REASON];
};

int overfit_check_possible(const char *language); /* else nobody can look, and that is a doubt */
/* examples: all of them. x: what was changed in source, which is as it was before. */
void overfit_check_start(struct overfit_check *d, const struct candidate_box *s,
			 const json_t *examples, const struct edit *x, const char *source,
			 size_t n);
void overfit_check(struct overfit_check *d, uint64_t now_ms);
void overfit_check_fini(struct overfit_check *d); /* at any time: done is not called */

/* What a box has said, a line of JSON at a time: "" where it went through everything and found nothing. For the
 * tests. */
void overfit_check_read(const char *said, size_t n, char out_why[OVERFIT_CHECK_REASON]);
