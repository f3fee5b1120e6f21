/* subject.h - a subject of the benchmark: something that runs /bin/true.
 * Owns:         the table of subjects and what was measured of each.
 * Does not own: when and how often they run; latency.c and rate.c decide that. */
#pragma once
#include "base/err.h"
#include "sample.h"

#define RATE_STEPS 3 /* numbers of workers, see rate.c */

struct subject {
	const char *name;  /* for --only and JSON */
	const char *label; /* for the table */
	int is_ours;
	int in_rates;

	/* Finds it, prepares it; a failure makes it "n/a" with that reason. */
	int (*open)(struct subject *s, struct err *e);
	/* Called in every worker process (a single one has number 0): prepares what workers must
	 * not share. */
	int (*join)(struct subject *s, int worker, struct err *e);
	/* Not measured, before a sample of latency. NULL: nothing to do. */
	int (*ready)(struct subject *s, struct err *e);
	/* Measured: from the request to the exit status of /bin/true. */
	int (*once)(struct subject *s, struct err *e);
	/* Cleans up after once(); measured separately. NULL: once() leaves nothing. */
	int (*after)(struct subject *s, struct err *e);
	/* Not measured: checks that the sample is what the row describes. NULL: no check needed. */
	int (*check)(struct subject *s, struct err *e);
	void (*close)(struct subject *s);

	char version[96];
	char missing[200]; /* why it is "n/a"; empty: it runs */
	int opened, wanted;
	unsigned failed, failed_in_a_row;
	uint64_t cost_ns; /* from the warm-up: decides how often it is visited */
	struct samples done, total;
	double rate[RATE_STEPS]; /* per second, over so many slices; NAN: one failed */
	unsigned slices[RATE_STEPS];
	char rate_note[200];
};

extern struct subject subjects[];
extern const unsigned nsubjects;

struct subject *subject_named(const char *name); /* NULL: no such */
/* Its p50 in ms; NAN when it was not measured. */
double subject_p50(const char *name);
/* Makes it "n/a" from now on. */
void subject_give_up(struct subject *s, const struct err *e);
/* ready, once, after; both durations are written on success. NULL: not needed. */
must_check int subject_run(struct subject *s, uint64_t *out_done_ns, uint64_t *out_total_ns,
			   struct err *e);

/* Set by ^C: every loop checks it, so that the clean-up at the end is reached. */
extern volatile int stop_asked;
