/* series.c - see series.h. */
#include "store/series.h"
#include "store/sql.h"

#include <stdlib.h>

enum { SERIES_ROWS = 64 }; /* removed per call: a clock that is wrong for a minute costs little */

int store_series_minute_add(struct store *s, int64_t at_s, const void *data, size_t n,
			    struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT INTO series_minutes (at_s, data) VALUES (?, ?)");

	sql_i64(&q, at_s);
	sql_blob(&q, data, n);
	return sql_run(&q, e);
}

int store_series_minute_next(struct store *s, int64_t after_seq, struct store_series_minute *out,
			     struct err *e)
{
	auto_sql struct sql q = sql(
		s, "SELECT seq, at_s, data FROM series_minutes WHERE seq > ? ORDER BY seq LIMIT 1");

	sql_i64(&q, after_seq);
	if (sql_one(&q, "minute after", "this one", e) < 0)
		return -1;
	out->seq = sql_get_i64(&q);
	out->at_s = sql_get_i64(&q);
	out->data = sql_get_blob(&q, &out->n);
	return 0;
}

int store_series_folded(struct store *s, int64_t *out_seq, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT seq FROM series_folded");
	int rc = sql_row(&q, e);

	if (rc >= 0)
		*out_seq = rc ? sql_get_i64(&q) : 0;
	return rc < 0 ? -1 : 0;
}

int store_series_set_folded(struct store *s, int64_t seq, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT OR REPLACE INTO series_folded (one, seq) VALUES (1, ?)");

	sql_i64(&q, seq);
	return sql_run(&q, e);
}

int store_series_day_put(struct store *s, const char *metric, int64_t day_s, const void *data,
			 size_t n, struct err *e)
{
	auto_sql struct sql q = sql(
		s,
		"INSERT OR REPLACE INTO series_days (metric, day_s, bytes, data) VALUES (?, ?, ?, ?)");

	sql_text(&q, metric);
	sql_i64(&q, day_s);
	sql_i64(&q, (int64_t)n);
	sql_blob(&q, data, n);
	return sql_run(&q, e);
}

static int series_read(struct sql *q, store_series_each *each, void *ctx, struct err *e)
{
	int rc;

	while ((rc = sql_row(q, e)) > 0) {
		int64_t at_s = sql_get_i64(q);
		size_t n;
		void *data = sql_get_blob(q, &n);

		each(ctx, at_s, data, n);
		free(data);
	}
	return rc;
}

int store_series_minutes(struct store *s, int64_t from_s, int64_t to_s, store_series_each *each,
			 void *ctx, struct err *e)
{
	auto_sql struct sql q = sql(
		s,
		"SELECT at_s, data FROM series_minutes WHERE at_s >= ? AND at_s < ? ORDER BY at_s, seq");

	sql_i64(&q, from_s);
	sql_i64(&q, to_s);
	return series_read(&q, each, ctx, e);
}

int store_series_days(struct store *s, const char *metric, int64_t from_s, int64_t to_s,
		      store_series_each *each, void *ctx, struct err *e)
{
	auto_sql struct sql q = sql(
		s,
		"SELECT day_s, data FROM series_days WHERE metric = ? AND day_s >= ? AND day_s < ?"
		" ORDER BY day_s");

	sql_text(&q, metric);
	sql_i64(&q, from_s);
	sql_i64(&q, to_s);
	return series_read(&q, each, ctx, e);
}

/* ---- bounds ---- */

static int series_drop_before(struct store *s, const char *text, int64_t before_s, struct err *e)
{
	auto_sql struct sql q = sql(s, text);

	sql_i64(&q, before_s);
	sql_i64(&q, SERIES_ROWS);
	return sql_run(&q, e);
}

static int series_weigh(struct store *s, uint64_t *out_bytes, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT (SELECT coalesce(sum(bytes), 0) FROM series_days) +"
		       " (SELECT coalesce(sum(length(data)), 0) FROM series_minutes)");
	int rc = sql_row(&q, e);

	if (rc < 0)
		return -1;
	*out_bytes = rc ? sql_get_u64(&q) : 0;
	return 0;
}

static int series_drop_oldest(struct store *s, int64_t now_s, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "DELETE FROM series_days WHERE rowid IN (SELECT rowid FROM series_days"
		       " ORDER BY day_s > ? DESC, day_s LIMIT ?)");

	sql_i64(&q, now_s);
	sql_i64(&q, SERIES_ROWS);
	return sql_run(&q, e);
}

static int series_drop_surplus(struct store *s, const struct store_series_bounds *b, struct err *e)
{
	uint64_t bytes;

	if (series_weigh(s, &bytes, e) < 0)
		return -1;
	while (bytes > b->bytes_most) {
		uint64_t before = bytes;

		if (series_drop_oldest(s, b->now_s, e) < 0 || series_weigh(s, &bytes, e) < 0)
			return -1;
		if (bytes == before)
			return 0; /* only minutes are left */
	}
	return 0;
}

int store_series_trim(struct store *s, const struct store_series_bounds *b, struct err *e)
{
	if (series_drop_before(s,
			       "DELETE FROM series_minutes WHERE seq IN (SELECT seq FROM"
			       " series_minutes WHERE at_s < ? ORDER BY at_s LIMIT ?)",
			       b->minute_s, e) < 0 ||
	    series_drop_before(s,
			       "DELETE FROM series_minutes WHERE seq IN (SELECT seq FROM"
			       " series_minutes WHERE seq <= (SELECT max(seq) FROM series_minutes)"
			       " - ? ORDER BY seq LIMIT ?)",
			       b->minutes_most, e) < 0 ||
	    series_drop_before(s,
			       "DELETE FROM series_days WHERE rowid IN (SELECT rowid FROM"
			       " series_days WHERE day_s < ? ORDER BY day_s LIMIT ?)",
			       b->day_s, e) < 0)
		return -1;
	return b->weigh ? series_drop_surplus(s, b, e) : 0;
}
