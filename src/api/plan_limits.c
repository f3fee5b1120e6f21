/* plan_limits.c - see plan_limits.h. */
#include "api/plan_limits.h"
#include "api/quota.h"

static uint64_t plan_limits_max_run(void *ctx, const char *team)
{
	const struct plan *p = quota_plan(ctx, team);

	return plan_lower(p ? p->max_run_time_ms : 0, 0);
}

uint64_t plan_limits_run_ms(struct api *a, const char *team, uint64_t ms)
{
	return plan_lower(plan_limits_max_run(a, team), ms);
}

static uint64_t plan_limits_keep(void *ctx, const char *team, enum fleet_keep what,
				 uint64_t otherwise_ms)
{
	const struct plan *p = quota_plan(ctx, team);
	uint64_t ms = !p                           ? 0
		      : what == FLEET_KEEP_RECORDS ? p->retention_records_ms
						   : p->retention_outputs_ms;

	return plan_quota(0, ms, otherwise_ms); /* "none": without limit */
}

uint64_t plan_limits_retention_most_ms(struct api *a, const char *team)
{
	const struct plan *p = quota_plan(a, team);

	return p && p->retention_boxes_ms ? p->retention_boxes_ms : STORE_FOREVER;
}

uint64_t plan_limits_retention_ms(struct api *a, const char *team)
{
	const struct plan *p = quota_plan(a, team);

	return p && p->retention_boxes_ms ? p->retention_boxes_ms : a->fleet.conf.retention_ms;
}

void plan_limits_init(struct api *a)
{
	a->fleet.accounts.max_run_ms = plan_limits_max_run;
	a->fleet.accounts.keep_ms = plan_limits_keep;
}
