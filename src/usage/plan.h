/* plan.h - a plan: a named set of quotas, upper limits, retention and budgets, from [plan.NAME] of the settings.
 * Pure functions. A quota of a team comes before that of its plan, and that of the plan before quota.*. */
#pragma once
#include "base/err.h"
#include "store/teams.h"

enum plan_action { PLAN_REFUSE, PLAN_WARN };

/* 0 in a member: the plan does not set it. "none" in the settings is PLAN_NONE: no limit, or until deleted. */
#define PLAN_NONE UINT64_MAX
struct plan {
	char name[STORE_NAME + 1];
	uint64_t boxes, executions_per_day, compute_seconds_per_month, output_bytes_per_day,
		requests_per_second;
	uint64_t max_run_time_ms, max_lifetime_ms;
	uint64_t retention_boxes_ms, retention_records_ms, retention_outputs_ms;
	uint64_t budget_per_day_nano, budget_per_month_nano;
	uint64_t budget_action; /* enum plan_action */
};

int plan_is_name(
	const char *name); /* 1: lower-case letters, digits, '_' and '-', up to STORE_NAME */
/* One setting of a plan. ERR_NOT_FOUND: plans have no such setting; e names the most similar one. */
must_check int plan_set(struct plan *p, const char *setting, const char *text, struct err *e);
const struct plan *plan_find(const struct plan *all, unsigned n, const char *name); /* or NULL */
/* Of two upper limits (0: none) the lower one; PLAN_NONE in `plan` is no limit of the plan. */
uint64_t plan_lower(uint64_t plan, uint64_t otherwise);
/* How much of a budget is spent: PLAN_FULL, PLAN_WARNING or 0. */
enum { PLAN_WARNING = 80, PLAN_FULL = 100 };
unsigned plan_budget_percent(uint64_t spent, uint64_t limit);
/* The quota in effect, 0: none. own, plan: 0: not set; PLAN_NONE: no limit. */
uint64_t plan_quota(uint64_t own, uint64_t plan, uint64_t otherwise);
