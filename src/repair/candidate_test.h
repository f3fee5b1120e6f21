/* candidate_test.h - does this source pass these examples? Asked in fresh boxes, by programs that it cannot talk to.
 * Owns: its box (on a leash) and the source while it runs.
 *
 *   calls      one box for all: repair/judge.*, which keeps what is expected from the program; where
 *              there is no judge a box each, and we compare
 *   input      a box each; we compare what it said
 *   command    a box each; exit 0 is good */
#pragma once
#include "repair/candidate_box.h"

enum { TRIAL_EXAMPLES = 64 };

struct trial {
	const struct stall *stall; /* these two are the owner's */
	const json_t *examples;
	char *source;
	int hurried; /* the first that fails ends it */
	/* passed: a bit per example. lost: boxes could not be had, so it is not known. Once, perhaps
	 * from within trial_start(): it notes the answer and looks at it later. */
	void (*done)(struct trial *t, uint64_t passed, int lost);
	struct batch_job job;
	int flying;
	unsigned next;
	uint64_t passed, calls; /* calls: those that a judge makes, together */
	char word[32];
};

/* Can all of these be run? */
int trial_possible(const char *language, const json_t *examples);
void trial_start(struct trial *t, const struct stall *s, const json_t *examples, char *take_source);
void trial_check(struct trial *t, uint64_t now_ms);
void trial_fini(struct trial *t); /* at any time: done is not called */
