/* schedule_runs.h - connects schedules (schedule/schedule.h) with what they start: runs, batches and
 * pipelines, requested as the principal that created the schedule.
 * Owns: the engine of the schedules, the requests in progress. */
#pragma once
#include "api/api.h"
#include "schedule/schedule.h"

struct schedule_runs *schedule_runs_new(struct api *a);
void schedule_runs_free(struct schedule_runs *x); /* allowed on NULL */
struct schedules *schedule_runs_engine(const struct schedule_runs *x);
/* This server is now the only one, or no longer: begins, or decides no more ticks. */
void schedule_runs_alone(struct schedule_runs *x);

/* 0: the body of the schedule's requests has an error; e has the path to it. */
int schedule_runs_check(enum store_schedule_kind kind, json_t *body, struct err *e);
