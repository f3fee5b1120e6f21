/* overfit_check.h - checks whether the examples determine a repair, or whether another one would
 * pass, too.
 * Owns: its box (kill on close) while it runs. All other edits at the changed place are tested with
 * all examples. An edit that passes them but behaves differently with other inputs is a doubt: then
 * it is unknown which of the two is right. The output of the box is not trusted, as in a search: a
 * program that lies here only changes the label of its own repair. */
#pragma once
#include "repair/edit.h"
#include "repair/candidate_box.h"

enum { OVERFIT_CHECK_REASON = 240 };

struct overfit_check {
	const struct candidate_box *candidate_box; /* the owner's */
	/* why: the doubt; "": none. Called once, perhaps from within overfit_check_start(): the
	 * callback should store the result and handle it later. */
	void (*done)(struct overfit_check *d, const char *why);
	struct batch_job job;
	int flying;
	char why[OVERFIT_CHECK_REASON];
};

int overfit_check_possible(const char *language); /* otherwise there is a doubt */
/* examples: all of them. x: the edit of source, which is the original. */
void overfit_check_start(struct overfit_check *d, const struct candidate_box *s,
			 const json_t *examples, const struct edit *x, const char *source,
			 size_t n);
void overfit_check(struct overfit_check *d, uint64_t now_ms);
void overfit_check_fini(struct overfit_check *d); /* at any time: done is not called */

/* Parses the output of a box, a line of JSON at a time: "" if all edits were tried and none is a
 * doubt. For tests. */
void overfit_check_read(const char *said, size_t n, char out_why[OVERFIT_CHECK_REASON]);
