/* units.h - parses and prints sizes, times and counts. A parser accepts the complete text or
 * rejects it, with the text and an example in the message. Nothing is rounded up, nothing
 * overflows, and zero is rejected. */
#pragma once
#include "base/err.h"
#include <stdint.h>

/* "4096", "64k", "512M", "1.5G", "2TiB". K is 1024, in upper or lower case, with or without i or
 * B. */
must_check int units_parse_size(const char *text, uint64_t *out_bytes, struct err *e);
/* "500ms", "30s", "1.5s", "2m", "1h". */
must_check int units_parse_time(const char *text, uint32_t *out_ms, struct err *e);
/* "0.5", "2", down to thousandths. */
must_check int units_parse_cpus(const char *text, uint32_t *out_milli, struct err *e);
/* "64": 1 to max. */
must_check int units_parse_count(const char *text, uint32_t max, uint32_t *out_count,
				 struct err *e);

/* For a field of JSON, by its name: a size if that is mem, memory, disk or bandwidth, a time in milliseconds if it ends with
 * _ms. Dots in front of it do not matter. 0: it has no unit, and takes numbers only. */
int units_has_field(const char *name);
must_check int units_parse_field(const char *name, const char *text, uint64_t *out, struct err *e);

#define UNITS_TEXT 24

/* Short, with few digits; both return out. */
const char *units_size(char out[UNITS_TEXT], uint64_t bytes); /* "256 MiB", "1.5 GiB", "12 B" */
const char *units_time(char out[UNITS_TEXT], uint64_t us);    /* "40 ms", "2.1 s", "3 m 5 s" */

/* Memory of this many bytes for this time, in MiB times ms, rounded down. */
uint64_t units_mib_ms(uint64_t bytes, uint64_t us);
