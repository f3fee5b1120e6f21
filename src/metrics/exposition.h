/* exposition.h - the text of /metrics: Prometheus text format 0.0.4, or OpenMetrics 1.0. */
#pragma once
#include "base/buf.h"
#include "metrics/metrics.h"

enum exposition { EXPOSITION_TEXT, EXPOSITION_OPENMETRICS };

/* The format for a header Accept; NULL: the request has none. OpenMetrics only if it is named and
 * not less preferred than text/plain. */
enum exposition exposition_of_accept(const char *accept);
const char *exposition_content_type(enum exposition how);
/* All series of the last collection. created_ns: when this server started to count. */
void exposition_print(const struct metrics *m, enum exposition how, int64_t created_ns,
		      struct buf *out);

/* `atoll_name{label="value"`: what all lines of a series begin with, for text 0.0.4. */
void exposition_series_text(struct buf *out, const struct metric_def *d, const char *const *labels);
/* A number as both formats have it: 3, 0.25, 1e+20, +Inf, NaN. */
void exposition_number(struct buf *out, double v);
