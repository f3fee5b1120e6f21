/* series_history.h - the history of all figures, in the store: minutes of a day, hours of a year.
 * Owns: the part of a minute that is not written yet.
 *
 * Once a minute one row is written: the increase of counters and histograms, the value of gauges.
 * When an hour has ended, its minutes are added up into the rows of the day, one for each figure. A
 * restart loses at most the last minute; a write that fails is repeated with the next minute.
 *
 * Times are those of the wall clock. If the clock is set back, rows of the same minute exist several
 * times and are added up by readers; rows that lie in the future stay until they are among the
 * surplus (store/series.h), which is removed first. */
#pragma once
#include "metrics/metrics.h"
#include "metrics/series_codec.h"

enum {
	SERIES_MINUTES_S = 24 * 3600,
	SERIES_DAYS_S = 366 * 24 * 3600,
	SERIES_BYTES = 64 << 20,  /* of all rows */
	SERIES_POINTS = 1500,     /* of an answer, for each of its series ... */
	SERIES_ALL_POINTS = 20000 /* ... and for all of them */
};

struct series_history;
struct series_history *series_history_new(struct metrics *m);
void series_history_free(struct series_history *h); /* writes what is not written yet */
void series_history_tick(struct series_history *h); /* after a collection */
/* See metrics_add_earlier(). */
void series_history_add_earlier(struct series_history *h, const struct metrics_series *s,
				const double *v);
/* The same for a given time, for tests: writes if the minute is another one than at the last call. */
void series_history_tick_at(struct series_history *h, int64_t now_s);

struct series_query {
	const struct metric_def *def;
	struct metrics_filter filter;
	int64_t from_s, to_s; /* multiples of step_s */
	int64_t step_s;       /* a multiple of 60 */
	int by; /* index of a label: one series for each of its values; -1: one for all */
};
struct series_answer {
	struct series_group {
		char label[METRIC_LABEL + 1]; /* "" if by is -1 */
		struct series_value *v;       /* npoints; one without values has seen[i] 0 */
		uint8_t *seen;
	} * v;
	unsigned n, npoints;
	int64_t first_s; /* the oldest value; 0: none */
};
must_check int series_history_read(struct series_history *h, const struct series_query *q,
				   int64_t now_s, struct series_answer *out, struct err *e);
void series_answer_fini(struct series_answer *a);

/* See metrics_change(). */
struct metrics_sum series_history_change(struct series_history *h, const struct metric_def *d,
					 const struct metrics_filter *f, uint32_t window_s,
					 uint32_t *out_covered_s);
