/* usage_source.h - what a team has used: from the store of this machine, or from all machines of its cluster.
 * Owns: the answer while done() reads it. */
#pragma once
#include "api/api.h"
#include "store/usage.h"

enum { USAGE_DAYS = 366 + 31 }; /* of a report, and those of the month before */

struct usage_answer {
	struct store_usage_rows rows, totals; /* of the filter, and the same by currency */
	/* If they were asked for: sums of days of the team from first_day, which is not after the first day of this month. */
	int32_t first_day;
	struct store_usage days[USAGE_DAYS];
	struct store_usage month;        /* this one */
	uint64_t boxes;                  /* running or paused now */
	uint64_t spent_day, spent_month; /* in the currency of the settings, 10^-9 */
};
/* Calls done() at once or later, or answers with an error. The caller has not set c->state. */
typedef void usage_done(struct call *c, const struct usage_answer *a);
void usage_ask(struct call *c, const struct store_usage_filter *f, int with_days, usage_done *done);

/* {boxes, executions_today, ...}, as of quota_json(). */
json_t *usage_today_json(const struct usage_answer *a);
/* The first day of `days` for a filter whose last day is today. */
int32_t usage_first_day(int32_t from_day, int32_t today);
void usage_answer_free(struct usage_answer *a); /* allowed on NULL */
