/* rate.c - see rate.h. Workers are processes, like the clients of a keeper; each counts the runs it
 * finished before the slice ended, and the time that they took. */
#include "rate.h"

#include "base/clock.h"
#include "base/cleanup.h"
#include "mine.h"
#include "subject.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLICES = 3, MAX_WORKERS = 8 };
const int rate_workers[] = { 1, 2, MAX_WORKERS };
static_assert(ARRAY_LEN(rate_workers) == RATE_STEPS, "subject.h says how many");

struct tally { /* shared with one worker */
	uint64_t count, ns;
	struct err failure;
	int failed;
};

static void work(struct subject *s, struct tally *t, uint64_t slice_ns)
{
	uint64_t from = now_ns(), now = from;

	while (now - from < slice_ns) {
		if (s->once(s, &t->failure) < 0 || (s->after && s->after(s, &t->failure) < 0)) {
			t->failed = 1;
			return;
		}
		t->count++;
		now = now_ns();
	}
	t->ns = now - from;
}

/* A worker prepares, reports that it is ready, and starts when `go` is closed: all are ready
 * then. */
static _Noreturn void worker(struct subject *s, int i, struct tally *t, const int said[2],
			     const int go[2], uint64_t slice_ns)
{
	char byte;

	close(go[1]);
	if (s->join && s->join(s, i, &t->failure) < 0)
		t->failed = 1;
	if (write(said[1], "y", 1) != 1 || read(go[0], &byte, 1) != 0)
		_exit(1);
	if (!t->failed)
		work(s, t, slice_ns);
	_exit(0);
}

/* One slice; returns the rate of all workers together, or -1 with the first failure in e. */
static double slice(struct subject *s, int workers, uint64_t slice_ns, struct tally *tallies,
		    struct err *e)
{
	int said[2], go[2], alive = 0;
	pid_t pids[MAX_WORKERS];
	double rate = 0;
	char byte;

	memset(tallies, 0, MAX_WORKERS * sizeof(*tallies));
	if (pipe2(said, O_CLOEXEC) < 0 || pipe2(go, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	for (int i = 0; i < workers; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			worker(s, i, &tallies[i], said, go, slice_ns);
		alive += pids[i] > 0;
	}
	close(said[1]);
	for (int i = 0; i < alive; i++)
		if (read(said[0], &byte, 1) != 1)
			break;
	close(go[0]);
	close(go[1]);
	for (int i = 0; i < workers; i++)
		while (pids[i] > 0 && waitpid(pids[i], NULL, 0) < 0 && errno == EINTR)
			;
	close(said[0]);
	for (int i = 0; i < workers; i++) {
		if (tallies[i].failed || !tallies[i].ns) {
			*e = tallies[i].failure;
			return -1;
		}
		rate += (double)tallies[i].count * 1e9 / (double)tallies[i].ns;
	}
	return rate;
}

/* The share of requests that the pool served, since the sums in *since. */
static void note_hits(struct subject *s, const struct wire_info *since)
{
	struct wire_info now;
	uint64_t hits, all;
	struct err e;

	if (strcmp(s->name, "pooled") != 0 || keeper_sync_info(mine_link(), &now, &e) < 0)
		return;
	hits = now.hits - since->hits;
	all = hits + now.misses - since->misses;
	if (all)
		snprintf(s->rate_note, sizeof(s->rate_note), "%.0f%% from the pool",
			 100.0 * (double)hits / (double)all);
}

static void measure_one(struct subject *s, int step, uint64_t slice_ns, struct tally *tallies)
{
	struct wire_info before = { 0 };
	struct err e;
	double rate;

	if (s->is_ours && keeper_sync_info(mine_link(), &before, &e) < 0)
		rate = -1;
	else
		rate = slice(s, rate_workers[step], slice_ns, tallies, &e);
	if (rate < 0) {
		/* One failed slice invalidates the figure: the mean of the others would be too
		 * good. */
		s->rate[step] = NAN;
		s->slices[step] = SLICES;
		snprintf(s->rate_note, sizeof(s->rate_note), "%d workers: %.180s",
			 rate_workers[step], e.msg);
		return;
	}
	note_hits(s, &before);
	s->slices[step]++;
	s->rate[step] += (rate - s->rate[step]) / s->slices[step]; /* a running mean, from 0 */
}

void rate_measure(double seconds)
{
	uint64_t slice_ns = (uint64_t)(seconds * 1e9 / SLICES);
	struct tally *tallies = mmap(NULL, MAX_WORKERS * sizeof(*tallies), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (tallies == MAP_FAILED)
		abort();
	for (int turn = 0; turn < SLICES; turn++)
		for (int step = 0; step < RATE_STEPS; step++)
			for (unsigned i = 0; i < nsubjects && !stop_asked; i++) {
				struct subject *s = &subjects[i];

				if (s->in_rates && s->opened && !*s->missing &&
				    s->slices[step] < SLICES)
					measure_one(s, step, slice_ns, tallies);
			}
	munmap(tallies, MAX_WORKERS * sizeof(*tallies));
}
