/* series.h - figures of the server as JSON: their values now, and over time from the stored history.
 * Owns: nothing. */
#pragma once
#include "api/api.h"

extern const struct field series_query[];

void series_show(struct call *c); /* GET /v1/stats/series */
/* All figures with their definitions and values; owned by the caller. */
json_t *series_figures_json(const struct api *a);
