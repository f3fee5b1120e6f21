/* scale.c - see scale.h. */
#include "cluster/scale.h"

#include <stdio.h>

static struct scale_second *scale_second(struct scale *s, uint64_t now_ms)
{
	uint64_t at_s = now_ms / 1000 + 1; /* 0: never used */
	struct scale_second *x = &s->seconds[at_s % SCALE_SECONDS];

	if (x->at_s != at_s)
		*x = (struct scale_second){ .at_s = at_s };
	return x;
}

void scale_count_created(struct scale *s, uint64_t bytes, uint64_t now_ms)
{
	scale_second(s, now_ms)->created += bytes;
}

void scale_count_refused(struct scale *s, uint64_t bytes, uint64_t now_ms)
{
	scale_second(s, now_ms)->refused += bytes;
}

unsigned scale_needed(const struct scale_figures *f, uint64_t refused, uint64_t created_per_minute)
{
	double one = f->ready ? (double)f->capacity / f->ready * SCALE_FULL_PERCENT / 100 : 0;
	double load = (double)f->reserved + (double)refused +
		      (double)created_per_minute / 60 * ((double)f->boot_ms / 1000);
	unsigned needed;

	/* Without a node its capacity is not known: one is enough to learn it. */
	if (one <= 0)
		needed = load > 0 ? 1 : 0;
	else if (load / one >= SCALE_NODES_MAX)
		needed = SCALE_NODES_MAX;
	else
		needed = (unsigned)(load / one) + (load / one > (unsigned)(load / one));
	return needed > f->least ? needed : f->least;
}

/* The largest result of the last ten minutes, this one included. */
static unsigned scale_hold(struct scale *s, unsigned needed, uint64_t now_ms)
{
	uint64_t minute = now_ms / 60000 + 1;
	unsigned at = (unsigned)(minute % SCALE_HOLD_SLOTS), most = needed;

	if (s->held_min[at] != minute) {
		s->held_min[at] = minute;
		s->held[at] = 0;
	}
	if (needed > s->held[at])
		s->held[at] = needed;
	for (unsigned i = 0; i < SCALE_HOLD_SLOTS; i++)
		if (s->held_min[i] + SCALE_HOLD_SLOTS > minute && s->held[i] > most)
			most = s->held[i];
	return most;
}

struct scale_result scale_wanted(struct scale *s, const struct scale_figures *f, uint64_t now_ms)
{
	uint64_t created = 0, refused = 0, mib = UINT64_C(1) << 20;
	struct scale_result r;
	unsigned needed;

	for (unsigned i = 0; i < SCALE_SECONDS; i++)
		if (s->seconds[i].at_s + SCALE_SECONDS > now_ms / 1000 + 1) {
			created += s->seconds[i].created;
			refused += s->seconds[i].refused;
		}
	needed = scale_needed(f, refused, created);
	r.wanted = scale_hold(s, needed, now_ms);
	snprintf(
		r.reason, sizeof(r.reason),
		"%s: %llu of %llu MiB in use, %llu MiB refused and %llu MiB created in the last minute",
		r.wanted > needed    ? "more were needed within the last 10 minutes"
		: needed == f->least ? "the minimum is enough"
		: needed > f->ready  ? "the load needs more nodes"
				     : "the load needs them",
		(unsigned long long)(f->reserved / mib), (unsigned long long)(f->capacity / mib),
		(unsigned long long)(refused / mib), (unsigned long long)(created / mib));
	return r;
}
