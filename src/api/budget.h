/* budget.h - budgets of plans: what a team may spend in a day and in a month (UTC). At 80 % an event budget.warning
 * is sent, at 100 % budget.exceeded; then new runs and boxes are refused with 402, unless the plan only warns.
 * Owns: what teams with a budget have spent, a copy of the sums in the store. */
#pragma once
#include "api/api.h"

void budget_init(struct api *a);
void budget_fini(struct api *a);
void budget_second(struct api *a); /* sends the events */
/* 0: the budget is spent, and 402 was sent. */
int budget_request(struct call *c);
/* The same for programs that no request waits for. -1: e is the message. */
must_check int budget_check(struct api *a, const char *team, struct err *e);
/* The plan of the team has changed. */
void budget_changed(struct api *a, const char *team);
/* {day: {amount, currency, limit}, month: ...}, without those that have no limit; NULL: the team has no budget. */
json_t *budget_json(struct api *a, const char *team, uint64_t spent_day, uint64_t spent_month);
