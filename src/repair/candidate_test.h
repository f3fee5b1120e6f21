/* candidate_test.h - tests whether a source passes examples, in new boxes, with test programs that
 * it cannot influence.
 * Owns: its box (kill on close) and the source while it runs.
 *
 *   calls      one box for all: repair/judge.*, which keeps what is expected from the program; where
 *              there is no judge a box each, and we compare
 *   input      a box each; we compare what it said
 *   command    a box each; exit 0 is good */
#pragma once
#include "repair/candidate_box.h"

enum { CANDIDATE_TEST_EXAMPLES = 64 };

struct candidate_test {
	const struct candidate_box *candidate_box; /* set by the owner */
	const json_t *examples;
	char *source;
	int hurried; /* the first failure ends the test */
	/* passed: a bit per example. lost: a box failed, so the result is unknown. Called once,
	 * perhaps from within candidate_test_start(): the callback should store the result and
	 * handle it later. */
	void (*done)(struct candidate_test *t, uint64_t passed, int lost);
	struct batch_job job;
	int flying;
	unsigned next;
	uint64_t passed, calls; /* calls: those that the judge executes in one box */
	char word[32];
};

/* Can all of these be run? */
int candidate_test_possible(const char *language, const json_t *examples);
void candidate_test_start(struct candidate_test *t, const struct candidate_box *s,
			  const json_t *examples, char *take_source);
void candidate_test_check(struct candidate_test *t, uint64_t now_ms);
void candidate_test_fini(struct candidate_test *t); /* at any time: done is not called */
