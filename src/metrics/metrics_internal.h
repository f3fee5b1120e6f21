/* metrics_internal.h - shared by metrics.c (series, collection) and change.c (sums and changes) only. */
#pragma once
#include "metrics/metrics.h"
#include "metrics/series_history.h"

enum { METRICS_RING = METRICS_RECENT_S / METRICS_STEP_S + 1 };

struct metrics_family {
	struct metrics_series **v;
	unsigned n;
	unsigned next; /* where the next value probably belongs: sources keep their order */
};

struct metrics {
	struct fleet *fleet;
	struct timer tick;
	struct metrics_source *sources;
	struct metrics_family families[METRIC_COUNT];
	double *now; /* by slot */
	unsigned slots, room;
	uint64_t collection;
	struct metrics_moment ring[METRICS_RING];
	unsigned ring_first, ring_n;
	struct series_history *history;
};

/* change.c: stores the values of the last collection among the recent ones. */
void metrics_remember(struct metrics *m);
