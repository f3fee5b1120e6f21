/* cron.h - when a schedule is due: parses an expression, computes its times.
 *
 *   0 6 * * 1-5           minute, hour, day of the month, month, day of the week
 *   @daily                the usual names of common ones
 *   every 15m             at fixed distances from the start of the schedule
 *   at 2026-12-01T06:00   once
 *   once                  once, at the start of the schedule
 *
 * As in cron(5), a day matches if the day of the month or the day of the week matches, unless one of the
 * two fields begins with '*': then both must match.
 *
 * Local times and changes of the clocks. Hours that are named (the hour field does not begin with '*'):
 * a time that does not exist runs at the first moment after the change; a time that exists twice runs
 * at the first one. With '*' hours the expression describes a distance, not a time of the day: it runs
 * at every moment that matches, and at none that does not exist. */
#pragma once
#include "base/err.h"
#include <stdint.h>

struct zone;

enum { CRON_TEXT = 200, CRON_EVERY_LEAST_S = 1, CRON_EVERY_MOST_S = 366 * 86400 };

enum cron_kind { CRON_FIELDS, CRON_EVERY, CRON_AT, CRON_ONCE };
struct cron {
	enum cron_kind kind;
	/* CRON_FIELDS: bit n is value n */
	uint64_t minutes;
	uint32_t hours, days;
	uint16_t months;
	uint8_t weekdays;         /* 0: Sunday */
	int star_hour, both_days; /* both_days: day of the month and day of the week must match */
	int64_t every_s;          /* CRON_EVERY */
	int64_t local_s;          /* CRON_AT: local seconds (civil.h) */
};

/* The message says at which character of the text the error is, and what to type. */
must_check int cron_parse(struct cron *out, const char *text, struct err *e);
/* The first time after `after_s`; anchor_s: start of the schedule. 0: there is none. */
int cron_next(const struct cron *c, const struct zone *z, int64_t anchor_s, int64_t after_s,
	      int64_t *out_s);
/* In plain words: "at 06:00 on Monday to Friday". */
enum { CRON_WORDS = 240 };
void cron_words(const struct cron *c, char out[CRON_WORDS]);
