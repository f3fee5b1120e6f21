/* latency.c - round after round, every subject in a new order, a few samples per visit.
 *
 * Neighbours, clocks and the kernel's background work (network namespaces are torn down long after
 * their owner) affect all subjects alike that way, and ratios of one run are comparable. The first
 * sample of a visit is discarded: it would measure the caches of the previous subject. */
#include "latency.h"

#include "base/clock.h"
#include "subject.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WARM_UP = 3, BURST = 5, GIVE_UP_AFTER = 3 };
#define VISIT_NS UINT64_C(25000000) /* a slow subject gets fewer samples per visit ... */
#define DEAR_NS UINT64_C(50000000)  /* ... and a very slow one is not visited in every round */

/* -1: the sample does not count. */
static int sample(struct subject *s, uint64_t *done, uint64_t *total)
{
	struct err e;

	if (subject_run(s, done, total, &e) == 0) {
		s->failed_in_a_row = 0;
		return 0;
	}
	s->failed++;
	if (++s->failed_in_a_row >= GIVE_UP_AFTER)
		subject_give_up(s, &e);
	return -1;
}

static void warm_up(struct subject *s)
{
	uint64_t done, total;

	for (int i = 0; i < WARM_UP && !*s->missing && !stop_asked; i++)
		if (sample(s, &done, &total) == 0)
			s->cost_ns = s->cost_ns && s->cost_ns < total ? s->cost_ns : total;
}

void latency_open(void)
{
	for (unsigned i = 0; i < nsubjects && !stop_asked; i++) {
		struct subject *s = &subjects[i];
		struct err e;

		if (!s->wanted)
			continue;
		if (s->open(s, &e) < 0)
			subject_give_up(s, &e);
		else
			s->opened = 1;
	}
}

static void visit(struct subject *s, unsigned round)
{
	unsigned every = s->cost_ns > DEAR_NS ? (unsigned)(s->cost_ns / DEAR_NS) : 1;
	uint64_t fit = s->cost_ns ? VISIT_NS / s->cost_ns : BURST;
	unsigned burst = fit > BURST ? BURST : fit < 1 ? 1 : (unsigned)fit;
	uint64_t done, total;

	if (round % every)
		return;
	/* For a duration this long the caches do not matter. */
	if (s->cost_ns < VISIT_NS && sample(s, &done, &total) < 0)
		return;
	while (burst-- && !*s->missing && !stop_asked)
		if (sample(s, &done, &total) == 0) {
			samples_add(&s->done, done);
			samples_add(&s->total, total);
		}
}

unsigned latency_measure(unsigned rounds)
{
	unsigned order[32], n = 0, round;
	int tty = isatty(2);

	for (unsigned i = 0; i < nsubjects; i++)
		if (subjects[i].opened) {
			warm_up(&subjects[i]);
			order[n++] = i;
		}
	for (round = 0; round < rounds && !stop_asked; round++) {
		for (unsigned i = n; i > 1; i--) {
			unsigned j = (unsigned)random() % i, kept = order[i - 1];

			order[i - 1] = order[j];
			order[j] = kept;
		}
		for (unsigned i = 0; i < n && !stop_asked; i++)
			if (!*subjects[order[i]].missing)
				visit(&subjects[order[i]], round);
		if (tty)
			fprintf(stderr, "\rlatency: round %u of %u ", round + 1, rounds);
	}
	if (tty)
		fprintf(stderr, "\r\033[K");
	return round;
}
