/* series.h - rows of the history of figures (metrics/history.h). The contents are bytes to the store.
 *
 *   series_minutes   one row per minute: all figures that changed in it
 *   series_days      one row per figure and day: its hours
 *
 * Rows of minutes have a sequence number in the order in which they were written, which the wall
 * clock cannot change; those up to store_series_folded() are part of rows of days. */
#pragma once
#include "base/buf.h"
#include "store/store.h"
#include <stddef.h>

struct store_series_minute {
	int64_t seq, at_s;
	void *data; /* owned */
	size_t n;
};

must_check int store_series_minute_add(struct store *s, int64_t at_s, const void *data, size_t n,
				       struct err *e);
/* The first row with a higher number; ERR_NOT_FOUND: none. */
must_check int store_series_minute_next(struct store *s, int64_t after_seq,
					struct store_series_minute *out, struct err *e);
must_check int store_series_folded(struct store *s, int64_t *out_seq, struct err *e);
must_check int store_series_set_folded(struct store *s, int64_t seq, struct err *e);
/* Replaces the row. */
must_check int store_series_day_put(struct store *s, const char *metric, int64_t day_s,
				    const void *data, size_t n, struct err *e);

/* Calls each() for rows with from_s <= time < to_s. */
typedef void store_series_each(void *ctx, int64_t at_s, const void *data, size_t n);
must_check int store_series_minutes(struct store *s, int64_t from_s, int64_t to_s,
				    store_series_each *each, void *ctx, struct err *e);
must_check int store_series_days(struct store *s, const char *metric, int64_t from_s, int64_t to_s,
				 store_series_each *each, void *ctx, struct err *e);

/* Removes rows, a few in each call: minutes before minute_s, days before day_s, minutes that are not
 * among the newest minutes_most. weigh: also measures all rows, and removes days while they have more
 * than bytes_most together, days after now_s first, then the oldest. */
struct store_series_bounds {
	int64_t now_s, minute_s, day_s, minutes_most;
	uint64_t bytes_most;
	int weigh;
};
must_check int store_series_trim(struct store *s, const struct store_series_bounds *b,
				 struct err *e);
