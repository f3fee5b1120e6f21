/* time_param.h - moments in a query: "2026-11-15T12:00:00Z", milliseconds since 1970, or how long ago. */
#pragma once
#include "base/err.h"
#include <stdint.h>

enum { TIME_PARAM_TEXT = 40 };
/* now_ns: what "15m" is counted back from. */
must_check int time_param_parse(const char *text, int64_t now_ns, int64_t *out_ns, struct err *e);
