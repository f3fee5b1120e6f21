/* change.c - sums of figures, and their changes in a window: see metrics.h. */
#include "metrics/metrics_internal.h"

#include <stdlib.h>
#include <string.h>

void metrics_moment_take(const struct metrics *m, struct metrics_moment *x)
{
	if (x->n < m->slots) {
		x->v = realloc(x->v, m->slots * sizeof(*x->v));
		if (!x->v)
			abort();
	}
	x->n = m->slots;
	x->at_ms = loop_now_ms();
	x->collection = m->collection;
	if (m->slots)
		memcpy(x->v, m->now, m->slots * sizeof(*x->v));
}

void metrics_moment_add(struct metrics_moment *x, const struct metrics_series *s, const double *v)
{
	unsigned n = s->def->type == METRIC_HISTOGRAM ? METRICS_SLOTS : 1;

	if (s->first > x->collection)
		return;
	for (unsigned i = 0; i < n && s->slot + i < x->n; i++)
		x->v[s->slot + i] += v[i];
}

void metrics_moment_fini(struct metrics_moment *x)
{
	free(x->v);
	*x = (struct metrics_moment){ 0 };
}

void metrics_remember(struct metrics *m)
{
	struct metrics_moment *x = &m->ring[(m->ring_first + m->ring_n) % METRICS_RING];

	if (m->ring_n == METRICS_RING)
		m->ring_first = (m->ring_first + 1) % METRICS_RING;
	else
		m->ring_n++;
	metrics_moment_take(m, x);
}

/* The last moment that is at least window_s ago, or the oldest one. */
static const struct metrics_moment *metrics_moment_before(const struct metrics *m,
							  uint32_t window_s)
{
	uint64_t now_ms = loop_now_ms();
	unsigned i = m->ring_n;

	while (i > 1) {
		const struct metrics_moment *x = &m->ring[(m->ring_first + i - 1) % METRICS_RING];

		if (now_ms - x->at_ms >= (uint64_t)window_s * 1000)
			return x;
		i--;
	}
	return &m->ring[m->ring_first];
}

double metrics_increase(const struct metrics *m, const struct metrics_series *s, unsigned slot,
			const struct metrics_moment *since)
{
	double now = m->now[s->slot + slot], before = s->base[slot];

	if (s->first <= since->collection && s->slot + slot < since->n)
		before = since->v[s->slot + slot];
	else if (s->def->flags & METRIC_OUTSIDE)
		return 0;
	return now < before ? now : now - before;
}

static void metrics_sum_add(struct metrics_sum *to, double value, double sum)
{
	to->series++;
	to->value += value;
	to->sum += sum;
	if (to->series == 1 || value > to->most)
		to->most = value;
}

struct metrics_sum metrics_sum(const struct metrics *m, const struct metric_def *d,
			       const struct metrics_filter *f)
{
	const struct metrics_family *all = &m->families[metric_id(d)];
	int wide = d->type == METRIC_HISTOGRAM;
	struct metrics_sum out = { 0 };

	for (unsigned i = 0; i < all->n; i++) {
		const struct metrics_series *s = all->v[i];
		const double *v = m->now + s->slot;

		if (metrics_is_current(m, s) && metrics_filter_match(f, s->labels))
			metrics_sum_add(&out, v[wide ? METRICS_COUNT_SLOT : 0],
					v[wide ? METRICS_SUM_SLOT : 0]);
	}
	return out;
}

static struct metrics_sum metrics_recent_increase(const struct metrics *m,
						  const struct metric_def *d,
						  const struct metrics_filter *f,
						  const struct metrics_moment *since)
{
	const struct metrics_family *all = &m->families[metric_id(d)];
	int wide = d->type == METRIC_HISTOGRAM;
	struct metrics_sum out = { 0 };

	for (unsigned i = 0; i < all->n; i++) {
		const struct metrics_series *s = all->v[i];

		if (metrics_is_current(m, s) && metrics_filter_match(f, s->labels))
			metrics_sum_add(
				&out, metrics_increase(m, s, wide ? METRICS_COUNT_SLOT : 0, since),
				metrics_increase(m, s, wide ? METRICS_SUM_SLOT : 0, since));
	}
	return out;
}

/* The sum of the gauges at that moment. */
static struct metrics_sum metrics_gauges_at(const struct metrics *m, const struct metric_def *d,
					    const struct metrics_filter *f,
					    const struct metrics_moment *at)
{
	const struct metrics_family *all = &m->families[metric_id(d)];
	struct metrics_sum out = { 0 };

	for (unsigned i = 0; i < all->n; i++) {
		const struct metrics_series *s = all->v[i];

		if (s->first <= at->collection && s->slot < at->n &&
		    metrics_filter_match(f, s->labels))
			metrics_sum_add(&out, at->v[s->slot], at->v[s->slot]);
	}
	return out;
}

static struct metrics_sum metrics_recent_gauge(const struct metrics *m, const struct metric_def *d,
					       const struct metrics_filter *f,
					       const struct metrics_moment *since)
{
	struct metrics_sum out = metrics_sum(m, d, f), mean = { .series = out.series };
	unsigned n = 1;

	mean.value = mean.most = out.value;
	for (unsigned i = m->ring_n; i-- > 0;) {
		const struct metrics_moment *x = &m->ring[(m->ring_first + i) % METRICS_RING];
		struct metrics_sum one = metrics_gauges_at(m, d, f, x);

		mean.value += one.value;
		if (one.value > mean.most)
			mean.most = one.value;
		n++;
		if (x == since)
			break;
	}
	mean.value /= n;
	mean.sum = mean.value;
	return mean;
}

struct metrics_sum metrics_change(struct metrics *m, const struct metric_def *d,
				  const struct metrics_filter *f, uint32_t window_s,
				  uint32_t *out_covered_s)
{
	const struct metrics_moment *since = metrics_moment_before(m, window_s);
	uint32_t known_s = (uint32_t)((loop_now_ms() - since->at_ms) / 1000);

	if (window_s > METRICS_RECENT_S)
		return series_history_change(m->history, d, f, window_s, out_covered_s);
	*out_covered_s = known_s < window_s ? known_s : window_s;
	return d->type == METRIC_GAUGE ? metrics_recent_gauge(m, d, f, since)
				       : metrics_recent_increase(m, d, f, since);
}
