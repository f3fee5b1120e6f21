/* metrics.c - see metrics.h. */
#include "metrics/metrics_internal.h"
#include "base/buf.h"
#include "metrics/exposition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- series ---- */

static struct metrics_series *metrics_new_series(struct metrics *m, const struct metric_def *d,
						 const char *const *labels)
{
	unsigned n = metric_nlabels(d), slots = d->type == METRIC_HISTOGRAM ? METRICS_SLOTS : 1;
	struct metrics_family *f = &m->families[metric_id(d)];
	struct metrics_series *s = calloc(1, sizeof(*s));
	struct buf text = { 0 };

	f->v = realloc(f->v, (f->n + 1) * sizeof(struct metrics_series *));
	if (!s || !f->v)
		abort();
	s->def = d;
	s->slot = m->slots;
	s->first = m->collection;
	for (unsigned i = 0; i < n; i++) {
		s->labels[i] = strdup(labels[i]);
		if (!s->labels[i])
			abort();
	}
	exposition_series_text(&text, d, s->labels);
	s->text = buf_steal(&text);
	if (m->slots + slots > m->room) {
		m->room = (m->room ? m->room * 2 : 512) + slots;
		m->now = realloc(m->now, m->room * sizeof(*m->now));
		if (!m->now)
			abort();
	}
	memset(m->now + m->slots, 0, slots * sizeof(*m->now));
	m->slots += slots;
	f->v[f->n++] = s;
	return s;
}

static int metrics_has_labels(const struct metrics_series *s, const char *const *labels, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(s->labels[i], labels[i]) != 0)
			return 0;
	return 1;
}

static struct metrics_series *metrics_lookup(struct metrics_family *f, const char *const *labels,
					     unsigned n)
{
	for (unsigned k = 0; k < f->n; k++) {
		unsigned i = (f->next + k) % f->n;

		if (metrics_has_labels(f->v[i], labels, n)) {
			f->next = i + 1;
			return f->v[i];
		}
	}
	return NULL;
}

/* Different values that the label has in the series of its figure. */
static unsigned metrics_count_values(const struct metrics_family *f, unsigned label)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->n; i++) {
		unsigned k = 0;

		while (strcmp(f->v[k]->labels[label], f->v[i]->labels[label]) != 0)
			k++;
		n += k == i;
	}
	return n;
}

static int metrics_has_value(const struct metrics_family *f, unsigned label, const char *value)
{
	for (unsigned i = 0; i < f->n; i++)
		if (!strcmp(f->v[i]->labels[label], value))
			return 1;
	return 0;
}

static const char *metrics_bounded(const struct metrics_family *f, const struct metric_def *d,
				   unsigned label, const char *value, char cut[METRIC_LABEL + 1])
{
	const struct metric_label *l = &d->labels[label];

	snprintf(cut, METRIC_LABEL + 1, "%s", value ? value : "");
	if (l->values)
		return metric_label_has(l, cut) ? cut : "other";
	return metrics_has_value(f, label, cut) || metrics_count_values(f, label) < l->most
		       ? cut
		       : "other";
}

/* The series, and its value is 0 if this is its first value in this collection. */
static struct metrics_series *metrics_find_series(struct metrics *m, enum metric_id id,
						  const char *label, const char *second,
						  int *out_first)
{
	const struct metric_def *d = &metric_defs[id];
	struct metrics_family *f = &m->families[id];
	const char *labels[METRIC_LABELS] = { label ? label : "", second ? second : "" };
	char cut[METRIC_LABELS][METRIC_LABEL + 1];
	unsigned n = metric_nlabels(d);
	struct metrics_series *s = metrics_lookup(f, labels, n);

	if (!s) {
		for (unsigned i = 0; i < n; i++)
			labels[i] = metrics_bounded(f, d, i, labels[i], cut[i]);
		s = metrics_lookup(f, labels, n);
	}
	if (!s)
		s = metrics_new_series(m, d, labels);
	*out_first = s->seen != m->collection;
	if (*out_first) {
		s->seen = m->collection;
		memset(m->now + s->slot, 0,
		       (d->type == METRIC_HISTOGRAM ? METRICS_SLOTS : 1) * sizeof(double));
	}
	return s;
}

void metrics_put(struct metrics *m, enum metric_id id, double value, const char *label,
		 const char *second)
{
	int is_first;
	const struct metrics_series *s = metrics_find_series(m, id, label, second, &is_first);
	double *now = &m->now[s->slot];

	if (!(metric_defs[id].flags & METRIC_LEAST) || is_first)
		*now += value;
	else if (value < *now)
		*now = value;
}

void metrics_set_base(struct metrics *m, enum metric_id id, double value, const char *label,
		      const char *second)
{
	int is_first;

	metrics_find_series(m, id, label, second, &is_first)->base[0] = value;
}

void metrics_add_earlier(struct metrics *m, enum metric_id id, const double *v, const char *label,
			 const char *second)
{
	int is_first;
	struct metrics_series *s = metrics_find_series(m, id, label, second, &is_first);
	unsigned n = s->def->type == METRIC_HISTOGRAM ? METRICS_SLOTS : 1;

	for (unsigned i = 0; i < n; i++)
		s->base[i] += v[i];
	for (unsigned i = 0; i < m->ring_n; i++)
		metrics_moment_add(&m->ring[(m->ring_first + i) % METRICS_RING], s, v);
	series_history_add_earlier(m->history, s, v);
}

void metrics_put_histogram(struct metrics *m, enum metric_id id, const struct fleet_histogram *h,
			   const struct fleet_exemplar *examples, const char *label)
{
	int is_first;
	struct metrics_series *s = metrics_find_series(m, id, label, NULL, &is_first);
	double *v = m->now + s->slot;

	s->examples = is_first || examples ? examples : s->examples;
	for (unsigned i = 0; i <= FLEET_BUCKETS; i++)
		v[i] += (double)h->bucket[i];
	v[METRICS_COUNT_SLOT] += (double)h->count;
	v[METRICS_SUM_SLOT] += h->sum;
}

void metrics_add_source(struct metrics *m, struct metrics_source *s)
{
	s->next = m->sources;
	m->sources = s;
}

void metrics_remove_source(struct metrics *m, const struct metrics_source *s)
{
	struct metrics_source **at = &m->sources;

	while (*at && *at != s)
		at = &(*at)->next;
	if (*at)
		*at = s->next;
}

void metrics_collect(struct metrics *m)
{
	m->collection++;
	for (struct metrics_source *s = m->sources; s; s = s->next)
		s->read(s, m);
}

struct metrics_series *const *metrics_series(const struct metrics *m, enum metric_id id,
					     unsigned *out_n)
{
	*out_n = m->families[id].n;
	return m->families[id].v;
}

int metrics_is_current(const struct metrics *m, const struct metrics_series *s)
{
	return s->seen == m->collection;
}

const double *metrics_value(const struct metrics *m, const struct metrics_series *s)
{
	return m->now + s->slot;
}

struct fleet *metrics_fleet(const struct metrics *m)
{
	return m->fleet;
}

struct series_history *metrics_history(const struct metrics *m)
{
	return m->history;
}

/* ---- life ---- */

static void metrics_tick(struct timer *t)
{
	struct metrics *m = loop_owner(t, struct metrics, tick);

	metrics_collect(m);
	metrics_remember(m);
	series_history_tick(m->history);
	timer_set(t, METRICS_STEP_S * 1000);
}

struct metrics *metrics_new(struct fleet *f)
{
	struct metrics *m = calloc(1, sizeof(*m));

	if (!m)
		abort();
	m->fleet = f;
	m->history = series_history_new(m);
	/* The first moment: all counters of this process are 0. */
	metrics_remember(m);
	timer_init_late(&m->tick, f->loop, metrics_tick);
	timer_set(&m->tick, METRICS_STEP_S * 1000);
	return m;
}

static void metrics_free_family(struct metrics_family *f)
{
	for (unsigned i = 0; i < f->n; i++) {
		for (unsigned k = 0; k < METRIC_LABELS; k++)
			free((char *)f->v[i]->labels[k]);
		free(f->v[i]->text);
		free(f->v[i]);
	}
	free(f->v);
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	timer_fini(&m->tick);
	metrics_collect(m);
	series_history_free(m->history);
	for (unsigned i = 0; i < METRIC_COUNT; i++)
		metrics_free_family(&m->families[i]);
	for (unsigned i = 0; i < METRICS_RING; i++)
		metrics_moment_fini(&m->ring[i]);
	free(m->now);
	free(m);
}
