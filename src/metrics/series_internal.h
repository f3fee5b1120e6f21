/* series_internal.h - shared by series_history.c and series_read.c only. */
#pragma once
#include "metrics/series_history.h"

struct series_history {
	struct metrics *metrics;
	int64_t minute_s;              /* the minute in which values are counted now */
	struct metrics_moment written; /* the values that rows of the store include */
};
