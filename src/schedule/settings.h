/* settings.h - what a schedule does when ticks overlap, were missed or fail. Stored as JSON. */
#pragma once
#include "base/err.h"
#include <jansson.h>
#include <stdint.h>

enum schedule_overlap {
	OVERLAP_SKIP,    /* a tick that is due while the one before runs is skipped */
	OVERLAP_QUEUE,   /* ... starts after it */
	OVERLAP_REPLACE, /* ... ends it, and starts */
	OVERLAPS
};
enum schedule_catch_up {
	CATCH_UP_NONE, /* ticks that were missed while no server ran stay missed */
	CATCH_UP_ONE,  /* the last one of them is run */
	CATCH_UP_ALL,  /* the last catch_up_max of them are run, one after the other */
	CATCH_UPS
};
enum {
	CATCH_UP_MAX = 100,
	SCHEDULE_QUEUE_MAX = 100, /* ticks that wait for the one before them */
	SCHEDULE_RETRIES_MAX = 20,
};
#define SCHEDULE_JITTER_MAX_MS (24 * 3600 * 1000u)
#define SCHEDULE_RETRY_MS 10000u /* pause before the first retry; doubled before each later one */
#define SCHEDULE_RETRY_MAX_MS (3600 * 1000u)

struct schedule_settings {
	enum schedule_overlap overlap;
	enum schedule_catch_up catch_up;
	unsigned catch_up_max;
	uint32_t jitter_ms;
	unsigned retries;
	uint32_t retry_ms;
	uint64_t timeout_ms; /* of one attempt; 0: that of what it starts */
};

/* Reads the fields that are there; the others keep their values. */
must_check int schedule_settings_read(struct schedule_settings *s, const json_t *doc,
				      struct err *e);
void schedule_settings_default(struct schedule_settings *s);
json_t *schedule_settings_json(const struct schedule_settings *s);

/* The same tick has the same jitter after a restart. */
uint32_t schedule_jitter_ms(const struct schedule_settings *s, const char *id, int64_t at_ns);
uint64_t schedule_retry_ms(const struct schedule_settings *s, unsigned attempt);
