/* quota.h - what a team may use: requests per second, boxes at the same time, executions and output
 * per day, CPU time per month. A request above a quota is answered 429 with Retry-After and the
 * reason.
 * Owns: the counts since they were last written to the store. */
#pragma once
#include "api/api.h"
#include "store/grants.h"

/* The effective limits: those of the team, else those of its plan, else those of the configuration; 0: no limit. In a
 * store_team, 0 means that the team has no limit of its own, QUOTA_NONE that it is not limited. */
#define QUOTA_NONE UINT64_MAX
#define QUOTA_NONE_RATE UINT32_MAX
struct store_team quota_limits(const struct api *a, const struct store_team *own);

/* The plan of a team; NULL: it has none, or one that the settings do not have. */
const struct plan *quota_plan(struct api *a, const char *team);
/* The longest lifetime of a box of this team; 0: no limit. */
uint64_t quota_max_lifetime_ms(struct api *a, const char *team);

must_check int quota_init(struct api *a, struct err *e);
void quota_fini(struct api *a); /* writes the counts that are not in the store yet */
void quota_second(struct api *a);
void quota_flush(struct api *a); /* writes the counts to the store */

/* Each returns 0 if the quota is exhausted, after it has answered 429; the second and third also if the budget is
 * spent: 402. */
int quota_request(struct call *c);
int quota_box(struct call *c);
int quota_run(struct call *c);
/* For programs that no request waits for; counts one. 0: the quota is exhausted, and e names it. */
int quota_item(struct api *a, const char *team, struct err *e);
/* For a gateway, whose boxes are on other machines: the limit that the team or its plan sets. 0: none; quota.boxes holds
 * on each machine. */
uint64_t quota_box_limit(struct api *a, const char *team);
/* The same for executions and output of a day and CPU time of a month. 1: at least one is limited. */
int quota_run_limits(struct api *a, const char *team, uint64_t out[STORE_RESOURCES]);
/* The first day of the period that now is, see store/grants.h. */
int32_t quota_period(enum store_resource r);
/* A gateway gives this node a part of the limit of the team; limit 0: there is none any longer. lower: the node keeps what it has
 * used and half of the rest. One of an earlier period or version changes nothing. */
must_check int quota_grant(struct api *a, const char *team, enum store_resource r,
			   const struct store_grant *g, int lower, struct err *e);
/* What the team has used and may use here in this period. */
void quota_granted(struct api *a, const char *team, enum store_resource r, uint64_t *out_used,
		   uint64_t *out_amount);
void quota_refuse_unknown(struct call *c); /* 429: the database has not said what is left */
void quota_refuse_box(struct call *c, const char *why); /* why NULL: the limit is reached */
unsigned quota_boxes_left(struct api *a, const char *team);
void quota_used(struct api *a, const char *team, uint64_t cpu_us, uint64_t output_bytes);
/* As quota_run(), for a helper program of the server, which does not count as an execution. */
int quota_helper(struct call *c);
uint64_t quota_cpu_us(const struct api *a); /* of all teams, since the start */
/* Adds CPU time that boxes of this team have used. */
void quota_computed(struct api *a, const char *team, uint64_t cpu_us);
json_t *quota_json(struct api *a, const char *team);
/* The limits of the team have changed, or the team was deleted. */
void quota_changed(struct api *a, const char *team);
