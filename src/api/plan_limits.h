/* plan_limits.h - upper limits and retention of plans, for requests and for the fleet. */
#pragma once
#include "api/api.h"

void plan_limits_init(struct api *a); /* sets functions of the fleet's accounts */
/* The time limit of a run of this team whose request has `ms` (0: none): a plan lowers it. */
uint64_t plan_limits_run_ms(struct api *a, const char *team, uint64_t ms);
/* retention_ms of a box whose request sets none; STORE_FOREVER: until deleted. */
uint64_t plan_limits_retention_ms(struct api *a, const char *team);
/* The longest that a request may ask for; STORE_FOREVER: any. */
uint64_t plan_limits_retention_most_ms(struct api *a, const char *team);
