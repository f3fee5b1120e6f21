/* time_param.h - times in a query: "2026-11-15T12:00:00Z", milliseconds since 1970, or a duration
 * before now. */
#pragma once
#include "base/err.h"
#include <stdint.h>

enum { TIME_PARAM_TEXT = 40 };
/* now_ns: the time from which "15m" is subtracted. */
must_check int time_param_parse(const char *text, int64_t now_ns, int64_t *out_ns, struct err *e);
