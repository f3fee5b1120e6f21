/* series_codec.h - values of series as bytes, for rows of the store. Pure functions.
 *
 *   1                                     version
 *   name, type, labels, length {          a figure; it may occur several times
 *       label values, value               a series
 *   }
 *
 * Texts and lengths begin with or are variable-length integers, sums are doubles. The bytes come from
 * a file: a decoder stops at the first error, and has then reported what came before it. */
#pragma once
#include "base/buf.h"
#include "metrics/metrics.h"

enum { SERIES_NAME = 47 }; /* bytes of the name of a figure */

struct series_value {
	double sum;     /* counter: the increase; gauge: the sum of its samples; histogram: of its
			 * values */
	uint64_t count; /* gauge: samples; histogram: values; counter: 0 */
	uint64_t bucket[FLEET_BUCKETS + 1]; /* histogram only */
};
void series_value_add(struct series_value *to, const struct series_value *more);
/* The value below which that part of a histogram lies, from its buckets; 0 without values. */
double series_quantile(const struct metric_def *d, const struct series_value *v, double part);

struct series_entry {
	char name[SERIES_NAME + 1];
	enum metric_type type;
	unsigned nlabels;
	char labels[METRIC_LABELS][METRIC_LABEL + 1];
	struct series_value v;
};

struct series_set {
	struct series_entry *v;
	unsigned n, room;
	unsigned next; /* where the next one probably belongs */
};
void series_set_fini(struct series_set *s);
/* Adds to the entry with the same name and labels, or appends one. */
void series_set_add(struct series_set *s, const struct series_entry *x);

/* only: entries with this name; NULL: all. */
void series_encode(const struct series_set *s, const char *only, struct buf *out);
/* -1: the bytes are malformed, after the reported entries. */
int series_decode(const void *data, size_t n, const char *only,
		  void (*each)(void *ctx, const struct series_entry *x), void *ctx);

/* A row of a day: hours, each with bytes of series_encode(). Returns 0 when the row has no further
 * hour, -1 if it is malformed. *at: 0 for the first one. */
int series_next_hour(const void *data, size_t n, size_t *at, unsigned *out_hour,
		     const void **out_data, size_t *out_n);
void series_put_hour(struct buf *out, unsigned hour, const void *data, size_t n);
