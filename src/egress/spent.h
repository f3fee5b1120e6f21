/* spent.h - what a box has used of its budgets for destinations (net_policy.h).
 * Owns:         the counters of an endpoint, one for each budget of its policy.
 * Does not own: the budget of the whole box (egress.c), the decision (judge.h). */
#pragma once
#include "egress/judge.h"

/* The budgets that a destination belongs to, one bit each. */
unsigned spent_find(const struct egress_endpoint *w, const char *host, uint16_t port);
/* VERDICT_BUDGET with the reason if one of them is used up, else VERDICT_OK. connects: for another
 * connection. */
enum verdict spent_judge(const struct egress_endpoint *w, unsigned budgets, int connects,
			 struct judgement *out);
void spent_connect(struct egress_endpoint *w, unsigned budgets);
void spent_count(struct egress_endpoint *w, unsigned budgets, int into_box, size_t n);
/* The policy of the endpoint has changed: counters of budgets that stay are kept. */
void spent_changed(struct egress_endpoint *w);
