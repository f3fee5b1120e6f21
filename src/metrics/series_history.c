/* series_history.c - see series_history.h. Writing; series_read.c reads. */
#include "metrics/series_history.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "metrics/series_internal.h"
#include "store/series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SERIES_MINUTES_MOST = 2 * SERIES_MINUTES_S / 60,
	SERIES_FOLDS = 8, /* hours per tick: there are several only if the clock jumps */
	DAY_S = 24 * 3600,
};

/* ---- minutes ---- */

static void series_add_value(const struct metrics *m, const struct metrics_series *s,
			     const struct metrics_moment *since, struct series_set *out)
{
	const double *v = metrics_value(m, s);
	struct series_entry x = { .type = s->def->type, .nlabels = metric_nlabels(s->def) };

	switch (s->def->type) {
	case METRIC_COUNTER:
		x.v.sum = metrics_increase(m, s, 0, since);
		if (x.v.sum == 0)
			return;
		break;
	case METRIC_GAUGE:
		x.v = (struct series_value){ .sum = v[0], .count = 1 };
		break;
	case METRIC_HISTOGRAM:
		x.v.count = (uint64_t)metrics_increase(m, s, METRICS_COUNT_SLOT, since);
		if (!x.v.count)
			return;
		x.v.sum = metrics_increase(m, s, METRICS_SUM_SLOT, since);
		for (unsigned i = 0; i <= FLEET_BUCKETS; i++)
			x.v.bucket[i] = (uint64_t)metrics_increase(m, s, i, since);
	}
	snprintf(x.name, sizeof(x.name), "%s", s->def->name);
	for (unsigned i = 0; i < x.nlabels; i++)
		snprintf(x.labels[i], sizeof(x.labels[i]), "%s", s->labels[i]);
	series_set_add(out, &x);
}

static void series_since(const struct series_history *h, struct series_set *out)
{
	for (unsigned id = 0; id < METRIC_COUNT; id++) {
		unsigned n;
		struct metrics_series *const *all =
			metrics_series(h->metrics, (enum metric_id)id, &n);

		if (metric_defs[id].flags & METRIC_DEPRECATED)
			continue;
		for (unsigned i = 0; i < n; i++)
			if (metrics_is_current(h->metrics, all[i]))
				series_add_value(h->metrics, all[i], &h->written, out);
	}
}

/* ---- hours ---- */

static void series_collect_entry(void *ctx, const struct series_entry *x)
{
	series_set_add(ctx, x);
}

struct series_day { /* a row of a day, while an hour is added to it */
	unsigned hour;
	const struct series_set *more;
	const char *name;
	struct buf out;
	int added;
};

static void series_add_hour(struct series_day *d, const void *data, size_t n)
{
	struct series_set sum = { 0 };
	struct buf hour = { 0 };

	/* A malformed row is replaced by what can be read of it. */
	if (data)
		(void)series_decode(data, n, d->name, series_collect_entry, &sum);
	for (unsigned i = 0; i < d->more->n; i++)
		if (!strcmp(d->more->v[i].name, d->name))
			series_set_add(&sum, &d->more->v[i]);
	series_encode(&sum, d->name, &hour);
	series_put_hour(&d->out, d->hour, hour.p, hour.len);
	buf_fini(&hour);
	series_set_fini(&sum);
	d->added = 1;
}

static void series_copy_day(void *ctx, int64_t day_s, const void *data, size_t n)
{
	struct series_day *d = ctx;
	const void *one;
	size_t at = 0, len;
	unsigned hour;

	(void)day_s;
	while (series_next_hour(data, n, &at, &hour, &one, &len) > 0)
		if (hour == d->hour)
			series_add_hour(d, one, len);
		else
			series_put_hour(&d->out, hour, one, len);
}

static int series_write_day(struct store *s, const char *name, int64_t hour_s,
			    const struct series_set *more, struct err *e)
{
	int64_t day_s = hour_s - hour_s % DAY_S;
	struct series_day d = { .hour = (unsigned)(hour_s % DAY_S / 3600),
				.more = more,
				.name = name };
	int done = store_series_days(s, name, day_s, day_s + 1, series_copy_day, &d, e);

	if (done == 0 && !d.added)
		series_add_hour(&d, NULL, 0);
	if (done == 0)
		done = store_series_day_put(s, name, day_s, d.out.p, d.out.len, e);
	buf_fini(&d.out);
	return done;
}

static int series_write_hour(struct store *s, int64_t hour_s, const struct series_set *all,
			     struct err *e)
{
	for (unsigned i = 0; i < all->n; i++) {
		unsigned k = 0;

		while (strcmp(all->v[k].name, all->v[i].name) != 0)
			k++;
		if (k == i && series_write_day(s, all->v[i].name, hour_s, all, e) < 0)
			return -1;
	}
	return 0;
}

/* Adds up the minutes of the oldest hour that is not the present one. 1: there was one; 0: none. */
static int series_fold(struct store *s, int64_t now_s, struct err *e)
{
	struct series_set sum = { 0 };
	struct store_series_minute row;
	int64_t seq, hour_s = 0;
	int n = 0, done = -1;

	if (store_series_folded(s, &seq, e) < 0)
		return -1;
	while (store_series_minute_next(s, seq, &row, e) == 0) {
		int64_t of = row.at_s - row.at_s % 3600;
		int other = n ? of != hour_s : of == now_s - now_s % 3600;

		if (!other) {
			(void)series_decode(row.data, row.n, NULL, series_collect_entry, &sum);
			hour_s = of;
			seq = row.seq;
			n++;
		}
		free(row.data);
		if (other)
			break;
	}
	if (!n)
		done = 0;
	else if (series_write_hour(s, hour_s, &sum, e) == 0 &&
		 store_series_set_folded(s, seq, e) == 0)
		done = 1;
	series_set_fini(&sum);
	return done;
}

/* ---- the tick ---- */

static int series_write(struct series_history *h, int64_t at_s, int64_t now_s,
			const struct buf *data, struct err *e)
{
	struct store *s = metrics_fleet(h->metrics)->store;
	struct store_series_bounds bounds = { .now_s = now_s,
					      .minute_s = now_s - SERIES_MINUTES_S,
					      .day_s = now_s - SERIES_DAYS_S,
					      .minutes_most = SERIES_MINUTES_MOST,
					      .bytes_most = SERIES_BYTES };

	if (store_begin(s, e) < 0)
		return -1;
	if (store_series_minute_add(s, at_s, data->p, data->len, e) < 0)
		return store_rollback(s);
	for (unsigned i = 0; i < SERIES_FOLDS; i++) {
		int rc = series_fold(s, now_s, e);

		if (rc < 0)
			return store_rollback(s);
		if (!rc)
			break;
		bounds.weigh = 1;
	}
	if (store_series_trim(s, &bounds, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

static void series_write_minute(struct series_history *h, int64_t now_s)
{
	auto_buf struct buf data = { 0 };
	struct series_set all = { 0 };
	struct err e;

	series_since(h, &all);
	series_encode(&all, NULL, &data);
	series_set_fini(&all);
	/* On failure the next minute has the increase of both. */
	if (series_write(h, h->minute_s, now_s, &data, &e) == 0)
		metrics_moment_take(h->metrics, &h->written);
	else
		log_warn("cannot store the history of figures", LOG_E(&e));
}

void series_history_tick_at(struct series_history *h, int64_t now_s)
{
	int64_t minute_s = now_s - now_s % 60;

	if (minute_s == h->minute_s)
		return;
	series_write_minute(h, now_s);
	h->minute_s = minute_s;
}

void series_history_tick(struct series_history *h)
{
	series_history_tick_at(h, fleet_now_ns() / 1000000000);
}

void series_history_add_earlier(struct series_history *h, const struct metrics_series *s,
				const double *v)
{
	metrics_moment_add(&h->written, s, v);
}

struct series_history *series_history_new(struct metrics *m)
{
	struct series_history *h = calloc(1, sizeof(*h));
	int64_t now_s = fleet_now_ns() / 1000000000;

	if (!h)
		abort();
	h->metrics = m;
	h->minute_s = now_s - now_s % 60;
	metrics_moment_take(m, &h->written);
	return h;
}

void series_history_free(struct series_history *h)
{
	series_write_minute(h, fleet_now_ns() / 1000000000);
	metrics_moment_fini(&h->written);
	free(h);
}
