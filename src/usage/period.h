/* period.h - days and months of usage: calendar days in UTC, as numbers since 1970 (store_day()). Pure functions. */
#pragma once
#include "base/err.h"
#include <stdint.h>

enum { PERIOD_TEXT = 16 };

/* "2026-11-18", or "2026-11": the first day of the month, or with `last` its last one. */
must_check int period_parse(const char *text, int last, int32_t *out_day, struct err *e);
const char *period_text(int32_t day, char out[PERIOD_TEXT]); /* "2026-11-18" */
int32_t period_month(int32_t day);                           /* the first day of its month */
