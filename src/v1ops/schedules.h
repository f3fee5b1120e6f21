/* schedules.h - /v1/schedules: requests at fixed times. */
#pragma once
#include "api/api.h"

extern const struct field schedules_create_fields[], schedules_patch_fields[],
	schedules_list_query[], schedules_ticks_query[], schedules_next_query[];

void v1_schedules_create(struct call *c);
void v1_schedules_list(struct call *c);
void v1_schedules_show(struct call *c);
void v1_schedules_patch(struct call *c);
void v1_schedules_delete(struct call *c);
void v1_schedules_pause(struct call *c);
void v1_schedules_resume(struct call *c);
void v1_schedules_run(struct call *c);
void v1_schedules_ticks(struct call *c);
void v1_schedules_next(struct call *c);
