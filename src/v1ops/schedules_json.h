/* schedules_json.h - schedules and ticks in answers. For schedules.c. */
#pragma once
#include "api/api.h"
#include "store/schedules.h"

struct zone;

enum { SCHEDULES_SHOWN = 5 }; /* next times */

/* whole: with the request that it sends. */
json_t *schedules_json(struct api *a, const struct store_schedule *x, int whole);
json_t *schedules_tick_json(const struct store_schedule *x, const struct store_tick *t);
json_t *schedules_times_json(const struct zone *z, const int64_t *times, unsigned n);
