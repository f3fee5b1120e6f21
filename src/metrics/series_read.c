/* series_read.c - reads the history of a figure: see series_history.h. */
#include "metrics/series_internal.h"
#include "store/series.h"

#include <stdlib.h>
#include <string.h>

struct series_reading {
	const struct series_query *q;
	struct series_answer *out;
	int64_t at_s;           /* of the row */
	int64_t least_s, end_s; /* of values that are used */
	int full;               /* the answer would have more than SERIES_ALL_POINTS */
};

static void *series_zeroed(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		abort();
	return p;
}

static struct series_group *series_group(struct series_reading *r, const char *label)
{
	struct series_answer *a = r->out;
	struct series_group *g;

	for (unsigned i = 0; i < a->n; i++)
		if (!strcmp(a->v[i].label, label))
			return &a->v[i];
	if ((a->n + 1) * a->npoints > SERIES_ALL_POINTS && a->n) {
		r->full = 1;
		return NULL;
	}
	a->v = realloc(a->v, (a->n + 1) * sizeof(*a->v));
	if (!a->v)
		abort();
	g = &a->v[a->n++];
	*g = (struct series_group){ .v = series_zeroed(a->npoints, sizeof(*g->v)),
				    .seen = series_zeroed(a->npoints, 1) };
	memcpy(g->label, label, strlen(label) + 1);
	return g;
}

static void series_use_entry(void *ctx, const struct series_entry *x)
{
	struct series_reading *r = ctx;
	const struct series_query *q = r->q;
	const char *labels[METRIC_LABELS] = { x->labels[0], x->labels[1] };
	struct series_group *g;
	size_t point;

	/* Another version of Atoll may have written the row. */
	if (x->type != q->def->type || x->nlabels != metric_nlabels(q->def) ||
	    !metrics_filter_match(&q->filter, labels))
		return;
	g = series_group(r, q->by < 0 ? "" : x->labels[q->by]);
	if (!g)
		return;
	point = (size_t)((r->at_s - q->from_s) / q->step_s);
	series_value_add(&g->v[point], &x->v);
	g->seen[point] = 1;
	if (!r->out->first_s || r->at_s < r->out->first_s)
		r->out->first_s = r->at_s;
}

static void series_use_row(struct series_reading *r, int64_t at_s, const void *data, size_t n)
{
	r->at_s = at_s;
	if (at_s >= r->least_s && at_s < r->end_s)
		(void)series_decode(data, n, r->q->def->name, series_use_entry, r);
}

static void series_use_minute(void *ctx, int64_t at_s, const void *data, size_t n)
{
	series_use_row(ctx, at_s, data, n);
}

static void series_use_day(void *ctx, int64_t day_s, const void *data, size_t n)
{
	const void *one;
	size_t at = 0, len;
	unsigned hour;

	while (series_next_hour(data, n, &at, &hour, &one, &len) > 0)
		series_use_row(ctx, day_s + hour * INT64_C(3600), one, len);
}

static int64_t series_later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t series_earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int series_history_read(struct series_history *h, const struct series_query *q, int64_t now_s,
			struct series_answer *out, struct err *e)
{
	struct store *s = metrics_fleet(h->metrics)->store;
	/* From here on there are minutes; all hours before have been added up. */
	int64_t minutes_s = now_s - SERIES_MINUTES_S + 3600;
	struct series_reading r = { .q = q, .out = out };

	minutes_s -= minutes_s % 3600;
	*out = (struct series_answer){ .npoints = (unsigned)((q->to_s - q->from_s) / q->step_s) };
	r.least_s = q->from_s;
	r.end_s = series_earlier(q->to_s, minutes_s);
	if (r.least_s < r.end_s && store_series_days(s, q->def->name, r.least_s - r.least_s % 86400,
						     r.end_s, series_use_day, &r, e) < 0)
		goto fail;
	r.least_s = series_later(q->from_s, minutes_s);
	r.end_s = q->to_s;
	if (r.least_s < r.end_s &&
	    store_series_minutes(s, r.least_s, r.end_s, series_use_minute, &r, e) < 0)
		goto fail;
	if (!r.full)
		return 0;
	err_set(e, ERR_INVALID,
		"more than %d points for all series together; choose a larger step or a shorter time",
		SERIES_ALL_POINTS);
fail:
	series_answer_fini(out);
	return -1;
}

void series_answer_fini(struct series_answer *a)
{
	for (unsigned i = 0; i < a->n; i++) {
		free(a->v[i].v);
		free(a->v[i].seen);
	}
	free(a->v);
	*a = (struct series_answer){ 0 };
}

/* ---- the change in a long window ---- */

/* What was counted since the last row. */
static void series_add_unwritten(const struct series_history *h, const struct metric_def *d,
				 const struct metrics_filter *f, struct series_value *to)
{
	int wide = d->type == METRIC_HISTOGRAM;
	unsigned n;
	struct metrics_series *const *all = metrics_series(h->metrics, metric_id(d), &n);

	for (unsigned i = 0; i < n; i++) {
		const struct metrics_series *s = all[i];

		if (!metrics_is_current(h->metrics, s) || !metrics_filter_match(f, s->labels))
			continue;
		if (d->type == METRIC_GAUGE) {
			to->sum += metrics_value(h->metrics, s)[0];
			to->count++;
			continue;
		}
		to->sum +=
			metrics_increase(h->metrics, s, wide ? METRICS_SUM_SLOT : 0, &h->written);
		if (wide)
			to->count += (uint64_t)metrics_increase(h->metrics, s, METRICS_COUNT_SLOT,
								&h->written);
	}
}

struct metrics_sum series_history_change(struct series_history *h, const struct metric_def *d,
					 const struct metrics_filter *f, uint32_t window_s,
					 uint32_t *out_covered_s)
{
	int64_t now_s = fleet_now_ns() / 1000000000, from_s = now_s - window_s;
	struct series_query q = { .def = d, .by = -1 };
	struct metrics_sum out = metrics_sum(h->metrics, d, f);
	struct series_answer a;
	struct series_value v = { 0 };
	struct err e;

	if (f)
		q.filter = *f;
	q.from_s = from_s - from_s % 60;
	q.step_s = now_s - now_s % 60 + 60 - q.from_s;
	q.to_s = q.from_s + q.step_s;
	*out_covered_s = 0;
	if (series_history_read(h, &q, now_s, &a, &e) == 0) {
		if (a.n)
			v = a.v[0].v[0];
		if (a.first_s)
			*out_covered_s = (uint32_t)(now_s - a.first_s);
		series_answer_fini(&a);
	}
	if (*out_covered_s > window_s)
		*out_covered_s = window_s;
	series_add_unwritten(h, d, f, &v);
	out.sum = v.sum;
	out.value = d->type == METRIC_HISTOGRAM          ? (double)v.count
		    : d->type == METRIC_GAUGE && v.count ? v.sum / (double)v.count
							 : v.sum;
	if (d->type == METRIC_GAUGE)
		out.sum = out.value;
	out.most = out.value;
	return out;
}
