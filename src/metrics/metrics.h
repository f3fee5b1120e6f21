/* metrics.h - the values of the figures in definitions.h: now, and their change in the last minutes.
 * Owns:         one series for each figure and combination of label values, values of the last
 *               METRICS_RECENT_S seconds.
 * Does not own: the counters themselves. Their modules count (fleet_figures and others); sources copy
 *               the counts to here, every METRICS_STEP_S seconds and when a caller needs them.
 *
 *   counters ── source: metrics_put() ──► series ──► /metrics, GET /v1/stats
 *                                           ├──► recent values ──► metrics_change(): alert rules
 *                                           └──► series_history.h, once a minute
 *
 * The number of series is bounded by the table: a label value beyond the bound becomes "other". */
#pragma once
#include "fleet/fleet.h"
#include "metrics/definitions.h"

enum {
	METRICS_STEP_S = 10,
	METRICS_RECENT_S = 15 * 60,
	/* Slots of a histogram: its buckets, then: */
	METRICS_COUNT_SLOT = FLEET_BUCKETS + 1,
	METRICS_SUM_SLOT,
	METRICS_SLOTS,
};

struct metrics;
struct metrics *metrics_new(struct fleet *f);
/* Reads all sources a last time, and writes the last part of a minute to the history. */
void metrics_free(struct metrics *m);

/* ---- sources ---- */

struct metrics_source {
	struct metrics_source *next;
	void (*read)(struct metrics_source *s, struct metrics *m); /* calls metrics_put() */
};
void metrics_add_source(struct metrics *m, struct metrics_source *s);
/* A source that ends before metrics_free(). One that was not added is ignored. */
void metrics_remove_source(struct metrics *m, const struct metrics_source *s);

/* Label values are copied; NULL for a label that the figure does not have. A series that no source
 * sets in a collection is not shown. Two values for the same series are added; of a figure with
 * METRIC_LEAST the smaller one counts. */
void metrics_put(struct metrics *m, enum metric_id id, double value, const char *label,
		 const char *second);
/* A counter that continues from the database: only what is beyond this value is an increase. Called before the first
 * collection. */
void metrics_set_base(struct metrics *m, enum metric_id id, double value, const char *label,
		      const char *second);
/* A part of the next value that another machine had counted before this process knew of it: it is no increase. v: one slot,
 * or METRICS_SLOTS of a histogram. Only while the sources are read. */
void metrics_add_earlier(struct metrics *m, enum metric_id id, const double *v, const char *label,
			 const char *second);
/* examples: one for each bucket, or NULL; valid until the next collection. */
void metrics_put_histogram(struct metrics *m, enum metric_id id, const struct fleet_histogram *h,
			   const struct fleet_exemplar *examples, const char *label);

/* ---- values ---- */

/* Reads all sources now. Else values are up to METRICS_STEP_S old. */
void metrics_collect(struct metrics *m);

/* Conditions for labels, all of which must hold. */
struct metrics_filter {
	struct {
		int label; /* index in the definition */
		int negated;
		char value[METRIC_LABEL + 1];
	} v[4];
	unsigned n;
};
/* "language=python,outcome!=ok"; "": all series. ERR_INVALID: not such a text, or the figure has no
 * such label or value. */
must_check int metrics_filter_parse(struct metrics_filter *f, const struct metric_def *d,
				    const char *text, struct err *e);
int metrics_filter_match(const struct metrics_filter *f, const char *const *labels);

struct metrics_sum {
	unsigned series; /* that match; 0: there is no value, and the others are 0 */
	double value;    /* counter: count; gauge: sum of the gauges; histogram: number of values */
	double sum;      /* histogram: sum of the values. Else the same as value */
	double most;     /* the largest one of the series */
};
/* f NULL: all series. */
struct metrics_sum metrics_sum(const struct metrics *m, const struct metric_def *d,
			       const struct metrics_filter *f);
/* The increase of a counter or a histogram within the last window_s seconds; the mean of a histogram
 * in the window is sum / value. A gauge: value is the mean of its sums, most the largest. Windows up
 * to METRICS_RECENT_S are read from memory, with a resolution of METRICS_STEP_S; longer ones from the
 * history, in minutes. out_covered_s: how much of the window is known: the server may have started in
 * it. */
struct metrics_sum metrics_change(struct metrics *m, const struct metric_def *d,
				  const struct metrics_filter *f, uint32_t window_s,
				  uint32_t *out_covered_s);

/* ---- all series, for the modules that print and store them ---- */

struct metrics_series {
	const struct metric_def *def;
	unsigned slot;  /* of its value; a histogram has METRICS_SLOTS of them */
	uint64_t seen;  /* the last collection with a value */
	uint64_t first; /* the first one */
	/* Of a counter that the database or another machine has: its value when this process began. By slot. */
	double base[METRICS_SLOTS];
	const struct fleet_exemplar *examples;
	char *text; /* `name{label="value"` as in /metrics, without "}" */
	const char *labels[METRIC_LABELS];
};
/* Of one figure, in the order in which they appeared; at most *out_n. */
struct metrics_series *const *metrics_series(const struct metrics *m, enum metric_id id,
					     unsigned *out_n);
int metrics_is_current(const struct metrics *m, const struct metrics_series *s);
/* One slot, or METRICS_SLOTS of a histogram, whose buckets are not cumulated. */
const double *metrics_value(const struct metrics *m, const struct metrics_series *s);
struct fleet *metrics_fleet(const struct metrics *m);
struct series_history *metrics_history(const struct metrics *m);

struct metrics_moment { /* all values at one time */
	uint64_t at_ms;
	uint64_t collection;
	unsigned n; /* slots that existed */
	double *v;  /* owned */
};
/* To each slot of the series whose value at that moment is known. */
void metrics_moment_add(struct metrics_moment *x, const struct metrics_series *s, const double *v);
void metrics_moment_take(const struct metrics *m, struct metrics_moment *x);
void metrics_moment_fini(struct metrics_moment *x);
/* The increase of a slot of the series since then. A series that appeared later began at 0, unless
 * another process counts it. A value that is smaller than before began at 0 again. */
double metrics_increase(const struct metrics *m, const struct metrics_series *s, unsigned slot,
			const struct metrics_moment *since);
