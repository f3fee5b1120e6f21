/* series.c - see series.h. */
#include "v1box/series.h"
#include "api/time_param.h"
#include "metrics/series_history.h"
#include "record/record.h"
#include "v1box/stats.h"

#include <stdio.h>
#include <string.h>

enum { SERIES_STEP_MOST = 31 * 24 * 3600, SERIES_RANGE_S = 3600, HOUR_S = 3600 };

const struct field series_query[] = {
	{ "metric", FIELD_TEXT, 1, 0, SERIES_NAME + 6, "name of a figure, such as executions_total",
	  NULL },
	{ "from", FIELD_TEXT, 0, 0, TIME_PARAM_TEXT,
	  "a time, or a duration before now such as 7d (default: 1h)", NULL },
	{ "to", FIELD_TEXT, 0, 0, TIME_PARAM_TEXT,
	  "a time, or a duration before now (default: now)", NULL },
	{ "step", FIELD_INT, 0, 60, SERIES_STEP_MOST,
	  "seconds between points, a multiple of 60 (default: by the length of the time); values "
	  "older than a day have a step of 3600",
	  NULL },
	{ "where", FIELD_TEXT, 0, 0, 600,
	  "only series with these labels: language=python,outcome!=ok", NULL },
	{ "by", FIELD_TEXT, 0, 0, 60,
	  "one series for each value of this label (default: the sum of all)", NULL },
	{ 0 },
};

/* ---- values now ---- */

static json_t *series_number(double v)
{
	return v == (double)(int64_t)v && v < 1e15 && v > -1e15 ? json_integer((json_int_t)v)
								: json_real(v);
}

static void series_set_value(json_t *doc, const struct metric_def *d, const struct series_value *v)
{
	if (d->type == METRIC_HISTOGRAM) {
		json_object_set_new(doc, "count", json_integer((json_int_t)v->count));
		json_object_set_new(doc, "sum", series_number(v->sum));
		json_object_set_new(doc, "p50", series_number(series_quantile(d, v, 0.5)));
		json_object_set_new(doc, "p95", series_number(series_quantile(d, v, 0.95)));
		json_object_set_new(doc, "p99", series_number(series_quantile(d, v, 0.99)));
	} else {
		json_object_set_new(doc, "value",
				    series_number(d->type == METRIC_GAUGE && v->count
							  ? v->sum / (double)v->count
							  : v->sum));
	}
}

static json_t *series_current_json(const struct metrics *m, const struct metrics_series *s)
{
	const double *slots = metrics_value(m, s);
	struct series_value v = { .sum = slots[0] };
	json_t *doc = json_object(), *labels = json_object();

	if (s->def->type == METRIC_HISTOGRAM) {
		v.sum = slots[METRICS_SUM_SLOT];
		v.count = (uint64_t)slots[METRICS_COUNT_SLOT];
		for (unsigned i = 0; i <= FLEET_BUCKETS; i++)
			v.bucket[i] = (uint64_t)slots[i];
	}
	for (unsigned i = 0; i < metric_nlabels(s->def); i++)
		json_object_set_new(labels, s->def->labels[i].name, json_text(s->labels[i]));
	json_object_set_new(doc, "labels", labels);
	series_set_value(doc, s->def, &v);
	return doc;
}

static const char *series_type_name(const struct metric_def *d)
{
	static const char *const names[] = { "counter", "gauge", "histogram" };

	return names[d->type];
}

json_t *series_figures_json(const struct api *a)
{
	json_t *all = json_array();

	for (unsigned id = 0; id < METRIC_COUNT; id++) {
		const struct metric_def *d = &metric_defs[id];
		json_t *labels = json_array(), *series = json_array();
		unsigned n;
		struct metrics_series *const *v =
			metrics_series(a->metrics, (enum metric_id)id, &n);

		for (unsigned i = 0; i < metric_nlabels(d); i++)
			json_array_append_new(labels, json_string(d->labels[i].name));
		for (unsigned i = 0; i < n; i++)
			if (metrics_is_current(a->metrics, v[i]))
				json_array_append_new(series,
						      series_current_json(a->metrics, v[i]));
		if (d->flags & METRIC_DEPRECATED) {
			json_decref(labels);
			json_decref(series);
			continue;
		}
		json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "name",
						     d->name, "type", series_type_name(d), "unit",
						     d->unit, "help", d->help, "labels", labels,
						     "series", series));
	}
	return all;
}

/* ---- over time ---- */

/* So that there are enough points for a picture, and not more than SERIES_POINTS. */
static int64_t series_default_step(int64_t range_s)
{
	int64_t step = range_s <= 6 * HOUR_S ? 60 : range_s <= 24 * HOUR_S ? 300 : HOUR_S;

	while (range_s / step >= SERIES_POINTS)
		step = step == HOUR_S ? 24 * HOUR_S : step * 2;
	return step;
}

static int series_parse_time(struct call *c, const char *name, int64_t now_s, int64_t otherwise_s,
			     int64_t *out_s, struct err *e)
{
	const char *text = call_query(c, name);
	int64_t ns;

	*out_s = otherwise_s;
	if (!text)
		return 0;
	if (time_param_parse(text, now_s * 1000000000, &ns, e) < 0)
		return err_in(e, "?%s=", name);
	*out_s = ns < 0 ? 0 : ns / 1000000000;
	return 0;
}

static int series_parse_range(struct call *c, int64_t now_s, struct series_query *q, struct err *e)
{
	int64_t from_s, to_s, points;

	if (series_parse_time(c, "to", now_s, now_s, &to_s, e) < 0 ||
	    series_parse_time(c, "from", now_s, to_s - SERIES_RANGE_S, &from_s, e) < 0)
		return -1;
	if (from_s >= to_s)
		return err_set(e, ERR_INVALID, "?from= is not before ?to=");
	q->step_s = call_query_int(c, "step", 0);
	if (!q->step_s)
		q->step_s = series_default_step(to_s - from_s);
	if (q->step_s % 60)
		return err_set(e, ERR_INVALID, "?step=%lld is not a multiple of 60",
			       (long long)q->step_s);
	q->from_s = from_s - from_s % q->step_s;
	q->to_s = to_s - to_s % q->step_s + q->step_s;
	points = (q->to_s - q->from_s) / q->step_s;
	if (points > SERIES_POINTS + 1)
		return err_set(e, ERR_INVALID,
			       "%lld points; at most %d: choose a larger ?step=, or a shorter time",
			       (long long)points, SERIES_POINTS);
	return 0;
}

static int series_parse_query(struct call *c, int64_t now_s, struct series_query *q, struct err *e)
{
	const char *name = call_query(c, "metric"), *where = call_query(c, "where"),
		   *by = call_query(c, "by");

	*q = (struct series_query){ .def = metric_find(name), .by = -1 };
	if (!q->def || q->def->flags & METRIC_DEPRECATED)
		return err_set(e, ERR_NOT_FOUND,
			       "no figure '%.60s'; GET /v1/stats?figures=true lists them", name);
	if (metrics_filter_parse(&q->filter, q->def, where ? where : "", e) < 0)
		return err_in(e, "?where=");
	if (by && (q->by = metric_label_index(q->def, by)) < 0)
		return err_set(e, ERR_INVALID, "?by=: %s has no label '%.60s'", q->def->name, by);
	return series_parse_range(c, now_s, q, e);
}

static json_t *series_points_json(const struct series_query *q, const struct series_answer *a,
				  const struct series_group *g)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < a->npoints; i++) {
		json_t *point;

		if (!g->seen[i])
			continue;
		point = json_object();
		json_object_set_new(
			point, "at",
			json_time((uint64_t)(q->from_s + (int64_t)i * q->step_s) * 1000000000));
		series_set_value(point, q->def, &g->v[i]);
		json_array_append_new(all, point);
	}
	return all;
}

static json_t *series_answer_json(const struct series_query *q, const struct series_answer *a)
{
	json_t *items = json_array();

	for (unsigned i = 0; i < a->n; i++) {
		json_t *labels = json_object();

		if (q->by >= 0)
			json_object_set_new(labels, q->def->labels[q->by].name,
					    json_text(a->v[i].label));
		json_array_append_new(items, json_pack("{s:o, s:o}", "labels", labels, "points",
						       series_points_json(q, a, &a->v[i])));
	}
	return json_pack("{s:s, s:s, s:s, s:I, s:o, s:o, s:o}", "metric", q->def->name, "type",
			 series_type_name(q->def), "unit", q->def->unit, "step_s",
			 (json_int_t)q->step_s, "from", json_time((uint64_t)q->from_s * 1000000000),
			 "to", json_time((uint64_t)q->to_s * 1000000000), "items", items);
}

void series_show(struct call *c)
{
	int64_t now_s = fleet_now_ns() / 1000000000;
	struct series_query q;
	struct series_answer a;
	struct err e;

	if (stats_check_operator(c) < 0)
		return;
	if (series_parse_query(c, now_s, &q, &e) < 0 ||
	    series_history_read(metrics_history(c->api->metrics), &q, now_s, &a, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_json(c, 200, series_answer_json(&q, &a));
	series_answer_fini(&a);
}
