/* metrics.h - resource usage of sandboxes, from the gauges of /v1: GET .../metrics of one, and
 * of many. */
#pragma once
#include "api/fields.h"
#include "e2b/e2b.h"

extern const struct field metrics_query[], metrics_many_query[];
void metrics_one(struct call *c);  /* a sample every ten seconds, and the current one */
void metrics_many(struct call *c); /* the last sample of each */
