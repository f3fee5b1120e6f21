/* metrics_test.c - the table of figures, their values and changes, the text of /metrics, and the
 * stored history. */
#include "fake_fleet.h"
#include "metrics/exposition.h"
#include "metrics/series_history.h"
#include "store/series.h"
#include "store/sql.h"

#include <math.h>

static struct metrics *m;

/* Values that the test sets; the source puts them. */
static struct {
	double ok, failed, gauge, hits, cost;
	int keeper;
	const char *template;
	struct fleet_histogram h;
	struct fleet_exemplar examples[FLEET_BUCKETS + 1];
	unsigned templates; /* number of template names */
} now;

static void read_source(struct metrics_source *s, struct metrics *x)
{
	(void)s;
	metrics_put(x, METRIC_EXECUTIONS, now.ok, "python", "ok");
	metrics_put(x, METRIC_EXECUTIONS, now.failed, "python", "error");
	metrics_put(x, METRIC_BOXES, now.gauge, NULL, NULL);
	metrics_put(x, METRIC_COST, now.cost, NULL, NULL);
	metrics_put_histogram(x, METRIC_RUN_SECONDS, &now.h, now.examples, NULL);
	if (now.keeper)
		metrics_put(x, METRIC_POOL_HITS, now.hits, NULL, NULL);
	if (now.template)
		metrics_put(x, METRIC_TEMPLATE_BOXES_CREATED, 1, now.template, NULL);
	for (unsigned i = 0; i < now.templates; i++) {
		char name[16];

		snprintf(name, sizeof(name), "t%u", i);
		metrics_put(x, METRIC_TEMPLATE_BOXES_CREATED, 1, name, NULL);
	}
}

static struct metrics_source source = { .read = read_source };

static int begin(void)
{
	if (fake_begin(NULL, NULL) < 0)
		return 0;
	memset(&now, 0, sizeof(now));
	m = metrics_new(fake.fleet);
	metrics_add_source(m, &source);
	return 1;
}

static void end(void)
{
	metrics_free(m);
	fake_end();
}

static const char *text(enum exposition how)
{
	static struct buf out;

	buf_cut(&out, 0);
	metrics_collect(m);
	exposition_print(m, how, INT64_C(1700000000123000000), &out);
	return buf_str(&out);
}

#define HAS(how, line) CHECK(strstr(text(how), line) != NULL)
#define HAS_NOT(how, line) CHECK(strstr(text(how), line) == NULL)

/* ---- the table ---- */

TEST(every_figure_is_named_once_and_well)
{
	for (unsigned i = 0; i < METRIC_COUNT; i++) {
		const struct metric_def *d = &metric_defs[i];
		size_t n;

		CHECK(d->name && d->help && d->unit);
		n = strlen(d->name);
		CHECK(n <= SERIES_NAME);
		CHECK(metric_find(d->name) == d);
		CHECK((n > 6 && !strcmp(d->name + n - 6, "_total")) == (d->type == METRIC_COUNTER));
		CHECK(strspn(d->name, "abcdefghijklmnopqrstuvwxyz0123456789_") == n);
		/* OpenMetrics: the unit is the end of the name of the family. */
		if (d->type == METRIC_COUNTER)
			n -= 6;
		if (d->unit[0])
			CHECK(n > strlen(d->unit) &&
			      !strncmp(d->name + n - strlen(d->unit), d->unit, strlen(d->unit)));
		CHECK(!strchr(d->help, '\n') && !strchr(d->help, '\\'));
		for (unsigned k = 0; k < metric_nlabels(d); k++)
			CHECK(d->labels[k].values || d->labels[k].most);
	}
	CHECK(metric_find("atoll_boxes") == &metric_defs[METRIC_BOXES]);
	CHECK(!metric_find("nosuch") && !metric_find(""));
}

/* ---- filters ---- */

TEST(filters_accept_labels_of_the_figure_only)
{
	const struct metric_def *d = &metric_defs[METRIC_EXECUTIONS];
	const char *const python[] = { "python", "ok" }, *const bash[] = { "bash", "error" };
	struct metrics_filter f;
	char many[2000];

	CHECK_OK(metrics_filter_parse(&f, d, "", &err));
	CHECK(metrics_filter_match(&f, python) && metrics_filter_match(NULL, python));
	CHECK_OK(metrics_filter_parse(&f, d, "language=python,outcome!=error", &err));
	CHECK(metrics_filter_match(&f, python) && !metrics_filter_match(&f, bash));
	CHECK_OK(metrics_filter_parse(&f, d, "outcome!=ok", &err));
	CHECK(!metrics_filter_match(&f, python) && metrics_filter_match(&f, bash));
	CHECK(metrics_filter_parse(&f, d, "outcome", &err) < 0);
	CHECK_STR(err.msg, "'outcome' is not label=value or label!=value");
	CHECK(metrics_filter_parse(&f, d, "colour=red", &err) < 0);
	CHECK_STR(err.msg, "executions_total has no label 'colour'; its labels: language, outcome");
	CHECK(metrics_filter_parse(&f, d, "outcome=fine", &err) < 0);
	CHECK_STR(err.msg, "label outcome of executions_total is never 'fine'");
	CHECK(metrics_filter_parse(&f, &metric_defs[METRIC_BOXES], "a=b", &err) < 0);
	CHECK(metrics_filter_parse(&f, d, "=", &err) < 0);
	CHECK(metrics_filter_parse(&f, d, "!=", &err) < 0);
	CHECK(metrics_filter_parse(&f, d, "outcome=ok,outcome=ok,outcome=ok,outcome=ok,outcome=ok",
				   &err) < 0);
	memset(many, 'x', sizeof(many));
	memcpy(many, "language=", 9);
	many[sizeof(many) - 1] = 0;
	CHECK(metrics_filter_parse(&f, d, many, &err) < 0);
}

/* ---- the text ---- */

TEST(both_formats_have_counters_gauges_and_histograms)
{
	CHECK(begin());
	now.ok = 3;
	now.gauge = 0.25;
	now.examples[fleet_observe(&now.h, 700000)] = (struct fleet_exemplar){
		.run = "abcdefghijkl", .value = 0.7, .at_ns = INT64_C(1700000001500000000)
	};
	HAS(EXPOSITION_TEXT, "# TYPE atoll_executions_total counter\n");
	HAS(EXPOSITION_TEXT, "\natoll_executions_total{language=\"python\",outcome=\"ok\"} 3\n");
	HAS(EXPOSITION_TEXT, "\natoll_boxes 0.25\n");
	HAS(EXPOSITION_TEXT, "\natoll_run_seconds_bucket{le=\"1\"} 1\n");
	HAS(EXPOSITION_TEXT, "\natoll_run_seconds_bucket{le=\"0.5\"} 0\n");
	HAS(EXPOSITION_TEXT, "\natoll_run_seconds_bucket{le=\"+Inf\"} 1\n");
	HAS(EXPOSITION_TEXT, "\natoll_run_seconds_sum 0.7\n");
	HAS(EXPOSITION_TEXT, "\natoll_cost_total 0\n");
	HAS_NOT(EXPOSITION_TEXT, "# UNIT");
	HAS_NOT(EXPOSITION_TEXT, "# EOF");
	HAS_NOT(EXPOSITION_TEXT, "abcdefghijkl");
	HAS_NOT(EXPOSITION_TEXT, "_created");
	HAS(EXPOSITION_OPENMETRICS, "# TYPE atoll_executions counter\n");
	HAS(EXPOSITION_OPENMETRICS, "# UNIT atoll_run_seconds seconds\n");
	HAS(EXPOSITION_OPENMETRICS,
	    "\natoll_executions_total{language=\"python\",outcome=\"ok\"} 3\n");
	HAS(EXPOSITION_OPENMETRICS,
	    "\natoll_run_seconds_bucket{le=\"1.0\"} 1 # {run_id=\"abcdefghijkl\"} 0.7 "
	    "1700000001.500\n");
	HAS(EXPOSITION_OPENMETRICS, "\natoll_run_seconds_created 1700000000.123\n");
	CHECK(!strcmp(strrchr(text(EXPOSITION_OPENMETRICS), '#'), "# EOF\n"));
	end();
}

TEST(the_format_is_chosen_by_accept)
{
	static const struct {
		const char *accept;
		enum exposition how;
	} rows[] = {
		{ NULL, EXPOSITION_TEXT },
		{ "", EXPOSITION_TEXT },
		{ "*/*", EXPOSITION_TEXT },
		{ "text/plain", EXPOSITION_TEXT },
		{ "application/openmetrics-text", EXPOSITION_OPENMETRICS },
		{ "Application/OpenMetrics-Text; version=1.0.0", EXPOSITION_OPENMETRICS },
		{ "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.1",
		  EXPOSITION_OPENMETRICS },
		{ "application/openmetrics-text;q=0.3, text/plain;q=0.4", EXPOSITION_TEXT },
		{ "application/openmetrics-text;q=0", EXPOSITION_TEXT },
		{ "application/openmetrics-text;q=nan", EXPOSITION_TEXT },
		{ ",,,;;;q=", EXPOSITION_TEXT },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		CHECK_INT(exposition_of_accept(rows[i].accept), rows[i].how);
}

TEST(numbers_are_written_as_the_formats_want_them)
{
	static const struct {
		double v;
		const char *text;
	} rows[] = { { 0, "0" },           { 12345678901234, "12345678901234" },
		     { 0.5, "0.5" },       { -3, "-3" },
		     { 1e20, "1e+20" },    { 1e-9, "1e-09" },
		     { NAN, "NaN" },       { INFINITY, "+Inf" },
		     { -INFINITY, "-Inf" } };

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		auto_buf struct buf b = { 0 };

		exposition_number(&b, rows[i].v);
		CHECK_STR(buf_str(&b), rows[i].text);
	}
}

TEST(label_values_are_escaped_and_cut)
{
	char longest[400];

	CHECK(begin());
	now.template = "a\"b\\c\nd";
	HAS(EXPOSITION_TEXT, "template=\"a\\\"b\\\\c\\nd\"} 1\n");
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	now.template = longest;
	(void)text(EXPOSITION_TEXT);
	longest[METRIC_LABEL] = 0;
	HAS(EXPOSITION_TEXT, longest);
	CHECK(!strstr(text(EXPOSITION_TEXT), "xxxxx\"} 2"));
	end();
}

TEST(names_beyond_the_bound_of_a_label_become_other)
{
	unsigned n;

	CHECK(begin());
	now.templates = 1000;
	metrics_collect(m);
	metrics_series(m, METRIC_TEMPLATE_BOXES_CREATED, &n);
	CHECK_INT(n, 33);
	HAS(EXPOSITION_TEXT, "template=\"other\"} 968\n");
	HAS(EXPOSITION_TEXT, "template=\"t31\"} 1\n");
	HAS_NOT(EXPOSITION_TEXT, "template=\"t32\"");
	metrics_put(m, METRIC_EXECUTIONS, 1, "python", "hostile");
	metrics_put(m, METRIC_EXECUTIONS, 1, "python", "more");
	metrics_series(m, METRIC_EXECUTIONS, &n);
	CHECK_INT(n, 3);
	end();
}

TEST(series_without_a_value_are_not_shown)
{
	CHECK(begin());
	HAS_NOT(EXPOSITION_TEXT, "pool_hits");
	now.keeper = 1;
	HAS(EXPOSITION_TEXT, "atoll_pool_hits_total 0\n");
	now.keeper = 0;
	HAS_NOT(EXPOSITION_TEXT, "pool_hits");
	end();
}

/* ---- changes ---- */

TEST(sums_and_changes_of_recent_values)
{
	const struct metric_def *d = &metric_defs[METRIC_EXECUTIONS];
	struct metrics_filter failed;
	struct metrics_sum s;
	uint32_t covered;

	CHECK(begin());
	CHECK_OK(metrics_filter_parse(&failed, d, "outcome!=ok", &err));
	now.ok = 90;
	now.failed = 10;
	now.hits = 500;
	now.keeper = 1;
	now.gauge = 4;
	fleet_observe(&now.h, 1000000);
	fleet_observe(&now.h, 3000000);
	metrics_collect(m);
	s = metrics_sum(m, d, NULL);
	CHECK(s.value == 100 && s.series == 2 && s.most == 90);
	s = metrics_sum(m, d, &failed);
	CHECK(s.value == 10 && s.series == 1);
	/* Counters of this process began at 0, those of others did not. */
	CHECK(metrics_change(m, d, &failed, 300, &covered).value == 10);
	CHECK(metrics_change(m, &metric_defs[METRIC_POOL_HITS], NULL, 300, &covered).value == 0);
	s = metrics_change(m, &metric_defs[METRIC_RUN_SECONDS], NULL, 300, &covered);
	CHECK(s.value == 2 && s.sum == 4);
	CHECK(metrics_sum(m, &metric_defs[METRIC_BOXES], NULL).value == 4);
	s = metrics_sum(m, &metric_defs[METRIC_PIPELINES], NULL);
	CHECK(s.series == 0 && s.value == 0);
	now.cost = 12.5;
	metrics_collect(m);
	CHECK(metrics_change(m, metric_find("cost_total"), NULL, 60, &covered).value == 12.5);
	end();
}

TEST(changes_in_long_windows_include_stored_and_new_values)
{
	const struct metric_def *d = &metric_defs[METRIC_EXECUTIONS];
	struct series_history *h;
	int64_t at = fleet_now_ns() / 1000000000;
	uint32_t covered;

	CHECK(begin());
	h = metrics_history(m);
	now.ok = 5;
	metrics_collect(m);
	series_history_tick_at(h, at + 60);
	now.ok = 7;
	metrics_collect(m);
	CHECK(metrics_change(m, d, NULL, 3600, &covered).value == 7);
	CHECK(covered <= 3600);
	end();
}

/* ---- the codec ---- */

static struct series_entry entry(const char *name, enum metric_type type, const char *label,
				 double sum, uint64_t count)
{
	struct series_entry x = { .type = type,
				  .nlabels = label ? 1 : 0,
				  .v = { sum, count, { 0 } } };

	snprintf(x.name, sizeof(x.name), "%s", name);
	snprintf(x.labels[0], sizeof(x.labels[0]), "%s", label ? label : "");
	if (type == METRIC_HISTOGRAM)
		x.v.bucket[3] = count;
	return x;
}

static void add_entry(struct series_set *s, struct series_entry x)
{
	series_set_add(s, &x);
}

static void collect(void *ctx, const struct series_entry *x)
{
	series_set_add(ctx, x);
}

static void example_set(struct series_set *s)
{
	add_entry(s, entry("a_total", METRIC_COUNTER, "x", 1.5, 0));
	add_entry(s, entry("b", METRIC_GAUGE, NULL, 10, 2));
	add_entry(s, entry("a_total", METRIC_COUNTER, "y", 3, 0));
	add_entry(s, entry("h", METRIC_HISTOGRAM, "z", 4, 300));
	add_entry(s, entry("a_total", METRIC_COUNTER, "x", 1, 0));
}

TEST(encoded_series_are_decoded_again)
{
	struct series_set in = { 0 }, out = { 0 };
	auto_buf struct buf bytes = { 0 };

	example_set(&in);
	CHECK_INT(in.n, 4);
	series_encode(&in, NULL, &bytes);
	CHECK_OK(series_decode(bytes.p, bytes.len, NULL, collect, &out));
	CHECK_INT(out.n, 4);
	CHECK(out.v[0].v.sum == 2.5 && out.v[2].v.sum == 3);
	CHECK(out.v[3].v.bucket[3] == 300 && out.v[3].v.count == 300);
	series_set_fini(&out);
	CHECK_OK(series_decode(bytes.p, bytes.len, "b", collect, &out));
	CHECK(out.n == 1 && out.v[0].v.sum == 10 && out.v[0].v.count == 2);
	series_set_fini(&in);
	series_set_fini(&out);
}

TEST(malformed_series_are_rejected_without_harm)
{
	struct series_set in = { 0 };
	auto_buf struct buf bytes = { 0 };
	unsigned bad = 0;

	example_set(&in);
	series_encode(&in, NULL, &bytes);
	for (size_t n = 0; n < bytes.len;
	     n++) { /* in memory of its own, so that a sanitizer sees its end */
		struct series_set out = { 0 };
		char *cut = memcpy(malloc(n + 1), bytes.p, n);

		bad += series_decode(cut, n, NULL, collect, &out) < 0;
		series_set_fini(&out);
		free(cut);
	}
	CHECK(bad > bytes.len / 2);
	for (size_t i = 0; i < bytes.len; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			struct series_set out = { 0 };

			bytes.p[i] ^= (char)(1 << bit);
			(void)!series_decode(bytes.p, bytes.len, NULL, collect, &out);
			for (unsigned k = 0; k < out.n; k++)
				CHECK(isfinite(out.v[k].v.sum));
			series_set_fini(&out);
			bytes.p[i] ^= (char)(1 << bit);
		}
	series_set_fini(&in);
}

TEST(quantiles_lie_within_their_bucket)
{
	const struct metric_def *d = &metric_defs[METRIC_RUN_SECONDS];
	struct series_value v = { 0 };

	CHECK(series_quantile(d, &v, 0.5) == 0);
	v.count = v.bucket[10] = 100; /* 0.5 to 1 s */
	CHECK(series_quantile(d, &v, 0.5) > 0.7 && series_quantile(d, &v, 0.5) < 0.8);
	CHECK(series_quantile(d, &v, 1) == 1);
	v = (struct series_value){ .count = 5 };
	v.bucket[FLEET_BUCKETS] = 5;
	CHECK(series_quantile(d, &v, 0.5) == 300);
}

/* ---- the history ---- */

static int64_t noon; /* of a day; the next hours are of the same day */

static struct series_answer history(enum metric_id id, int64_t from_s, int64_t to_s, int64_t step_s,
				    int by, int64_t now_s)
{
	struct series_query q = {
		.def = &metric_defs[id], .from_s = from_s, .to_s = to_s, .step_s = step_s, .by = by
	};
	struct series_answer a = { 0 };

	(void)!series_history_read(metrics_history(m), &q, now_s, &a, &err); /* else it is empty */
	return a;
}

static void tick(int64_t now_s)
{
	metrics_collect(m);
	series_history_tick_at(metrics_history(m), now_s);
}

static int count_rows(const char *table)
{
	char query[80];
	sqlite3_stmt *stmt;
	int n = -1;

	snprintf(query, sizeof(query), "SELECT count(*) FROM %s", table);
	if (sqlite3_prepare_v2(fake.store->db, query, -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW)
		n = sqlite3_column_int(stmt, 0);
	sqlite3_finalize(stmt);
	return n;
}

TEST(minutes_and_hours_are_stored)
{
	struct series_answer a;
	double sum = 0;

	CHECK(begin());
	noon = 1700000000 - 1700000000 % 86400 + 12 * 3600;
	tick(noon); /* the minute before it */
	for (int i = 1; i <= 150; i++) {
		now.ok += 2;
		now.failed += i % 3 == 0;
		now.gauge = i;
		fleet_observe(&now.h, 400000);
		tick(noon + i * 60);
	}
	a = history(METRIC_EXECUTIONS, noon, noon + 3 * 3600, 60, 1, noon + 3 * 3600);
	CHECK_INT(a.n, 2);
	CHECK(a.v[0].v[0].sum == 2 && a.v[0].v[149].sum == 2 && !a.v[0].seen[151]);
	for (unsigned i = 0; i < a.npoints; i++)
		sum += a.v[1].v[i].sum;
	CHECK(sum == 50);
	series_answer_fini(&a);
	a = history(METRIC_BOXES, noon, noon + 7200, 3600, -1, noon + 3 * 3600);
	CHECK(a.n == 1 && a.v[0].v[0].count == 60 && a.v[0].v[0].sum / 60 == 30.5);
	series_answer_fini(&a);
	/* A day and a half later the same time is read from the rows of the day. */
	tick(noon + 36 * 3600);
	for (int i = 1; i < 60; i++)
		tick(noon + 36 * 3600 + i * 60);
	CHECK(count_rows("series_minutes") < 65);
	a = history(METRIC_EXECUTIONS, noon, noon + 3 * 3600, 3600, -1, noon + 36 * 3600);
	CHECK(a.n == 1 && a.v[0].v[0].sum == 140 && a.v[0].v[1].sum == 140);
	series_answer_fini(&a);
	a = history(METRIC_RUN_SECONDS, noon, noon + 3600, 3600, -1, noon + 36 * 3600);
	CHECK(a.n == 1 && a.v[0].v[0].count == 60 && a.v[0].v[0].bucket[9] == 60);
	series_answer_fini(&a);
	end();
}

TEST(the_history_survives_a_restart)
{
	struct series_answer a;
	int64_t at = fleet_now_ns() / 1000000000;

	CHECK(begin());
	now.ok = 4;
	metrics_free(m);
	m = metrics_new(fake.fleet);
	metrics_add_source(m, &source);
	now.ok = 3; /* of the new process: it counts from 0 again */
	metrics_collect(m);
	tick(at + 120);
	at -= at % 60;
	a = history(METRIC_EXECUTIONS, at - 60, at + 240, 300, -1, at + 240);
	CHECK(a.n == 1 && a.v[0].v[0].sum == 7);
	series_answer_fini(&a);
	end();
}

TEST(a_clock_that_is_set_back_makes_no_unbounded_history)
{
	struct series_answer a;
	int64_t year = 365 * 86400;

	CHECK(begin());
	noon = 1700000000 - 1700000000 % 86400 + 12 * 3600;
	for (int i = 0; i < 100; i++) {
		now.ok++;
		tick(noon + i * 60);
	}
	/* Back by a year, then to and fro. */
	for (int i = 0; i < 100; i++) {
		now.ok++;
		tick(noon - year + i * 60);
	}
	for (int i = 0; i < 3500; i++) {
		now.ok++;
		tick(i % 2 ? noon : noon + 7200);
	}
	CHECK(count_rows("series_minutes") <= 2 * 1440 + 1);
	CHECK(count_rows("series_days") <= 2 * METRIC_COUNT);
	a = history(METRIC_EXECUTIONS, noon - year, noon - year + 7200, 7200, -1, noon);
	CHECK(a.n == 1 && a.v[0].v[0].sum >= 99);
	series_answer_fini(&a);
	end();
}

TEST(the_oldest_days_are_removed_when_the_history_is_too_large)
{
	struct store_series_bounds b = { .now_s = 100 * 86400, .bytes_most = 50 << 10, .weigh = 1 };
	char data[1024] = { 0 };

	CHECK(begin());
	for (int i = 0; i < 200; i++) {
		char name[16];

		snprintf(name, sizeof(name), "m%d", i % 2);
		CHECK_OK(store_series_day_put(fake.store, name, (i / 2 + 50) * INT64_C(86400), data,
					      sizeof(data), &err));
	}
	b.minutes_most = 10;
	CHECK_OK(store_series_trim(fake.store, &b, &err));
	CHECK(count_rows("series_days") <= 50);
	/* Days of the future were removed first, then the oldest. */
	CHECK_INT(count_rows("series_days WHERE day_s > 8640000"), 0);
	CHECK_INT(count_rows("series_days WHERE day_s = 8640000"), 2);
	end();
}

TEST(a_store_that_cannot_be_written_loses_no_counts)
{
	struct series_answer a;

	CHECK(begin());
	noon = 1700000000 - 1700000000 % 86400 + 12 * 3600;
	tick(noon);
	now.ok = 5;
	sqlite3_exec(fake.store->db, "PRAGMA query_only = 1", NULL, NULL, NULL);
	tick(noon + 60);
	sqlite3_exec(fake.store->db, "PRAGMA query_only = 0", NULL, NULL, NULL);
	now.ok = 6;
	tick(noon + 120);
	a = history(METRIC_EXECUTIONS, noon, noon + 300, 300, -1, noon + 300);
	CHECK(a.n == 1 && a.v[0].v[0].sum == 6);
	series_answer_fini(&a);
	end();
}

TEST(too_many_points_are_an_error)
{
	struct series_query q = { .def = &metric_defs[METRIC_TEMPLATE_BOXES_CREATED],
				  .step_s = 60,
				  .by = 0 };
	struct series_answer a;

	CHECK(begin());
	noon = 1700000000 - 1700000000 % 86400 + 12 * 3600;
	tick(noon);
	now.templates = 32;
	tick(noon + 60);
	q.from_s = noon - 60 * 1400;
	q.to_s = noon + 600;
	CHECK(series_history_read(metrics_history(m), &q, noon, &a, &err) < 0);
	CHECK_STR(
		err.msg,
		"more than 20000 points for all series together; choose a larger step or a shorter time");
	end();
}

/* A server that starts again: only what comes after its start is an increase. */
TEST(a_counter_of_the_database_continues)
{
	const struct metric_def *d = &metric_defs[METRIC_EXECUTIONS];
	uint32_t covered;

	CHECK(begin());
	metrics_set_base(m, METRIC_EXECUTIONS, 1000, "python", "ok");
	now.ok = 1003;
	now.failed = 2;
	HAS(EXPOSITION_TEXT, "atoll_executions_total{language=\"python\",outcome=\"ok\"} 1003\n");
	CHECK(metrics_change(m, d, NULL, 300, &covered).value == 5);
	end();
}

/* ---- parts of other machines ---- */

static double earlier[METRICS_SLOTS];

static void read_parts(struct metrics_source *x, struct metrics *to)
{
	(void)x;
	if (earlier[0] > 0)
		metrics_add_earlier(to, METRIC_EXECUTIONS, earlier, "python", "ok");
	if (earlier[METRICS_COUNT_SLOT] > 0)
		metrics_add_earlier(to, METRIC_RUN_CPU_SECONDS, earlier, NULL, NULL);
	memset(earlier, 0, sizeof(earlier));
	metrics_put(to, METRIC_KEEPER_UP, 1, NULL, NULL);
	metrics_put(to, METRIC_KEEPER_UP, now.gauge, NULL, NULL);
	metrics_put(to, METRIC_KEEPER_UP, 1, NULL, NULL);
	metrics_put_histogram(to, METRIC_RUN_CPU_SECONDS, &now.h, NULL, NULL);
}

static double increase(enum metric_id id)
{
	uint32_t covered;

	metrics_collect(m);
	return metrics_change(m, &metric_defs[id], NULL, 60, &covered).value;
}

TEST(what_another_machine_had_counted_before_is_no_increase)
{
	struct metrics_source parts = { .read = read_parts };

	CHECK(begin());
	metrics_add_source(m, &parts);
	now.gauge = 0;
	HAS(EXPOSITION_TEXT, "\natoll_keeper_up 0\n"); /* the least of three */
	now.ok = 5;
	CHECK(increase(METRIC_EXECUTIONS) == 5);
	earlier[0] = 1000; /* another machine has 1000 of the 1007 */
	now.ok = 1007;
	CHECK(increase(METRIC_EXECUTIONS) == 7);
	now.ok = 1008;
	CHECK(increase(METRIC_EXECUTIONS) == 8);
	HAS(EXPOSITION_TEXT, "atoll_executions_total{language=\"python\",outcome=\"ok\"} 1008\n");
	earlier[METRICS_COUNT_SLOT] = 30;
	now.h.count = 31;
	CHECK(increase(METRIC_RUN_CPU_SECONDS) == 1);
	metrics_remove_source(m, &parts);
	end();
}
