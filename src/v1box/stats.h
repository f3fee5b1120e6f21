/* stats.h - resource usage of boxes and the machine: GET /v1/boxes/{box}/stats, its history,
 * /v1/stats, /v1/stats/history. */
#pragma once
#include "api/api.h"

extern const struct field stats_query[], stats_history_query[], stats_host_query[],
	stats_host_history_query[];

void stats_show(struct call *c); /* the present usage, or a sample every second */
void stats_history(struct call *c);
void stats_host(struct call *c);
void stats_host_history(struct call *c);
/* Figures of the machine are for operators. -1: the call was answered with an error. */
int stats_check_operator(struct call *c);
