/* alerts.h - /v1/alerts: alerts of the daemon, their rules, a test of their notices. For operators. */
#pragma once
#include "api/api.h"

extern const struct field v1_alerts_query[], v1_alert_rule_fields[];

void v1_alerts_list(struct call *c);
void v1_alerts_rules(struct call *c);
void v1_alerts_set_rule(struct call *c);
void v1_alerts_reset_rule(struct call *c);
void v1_alerts_notices(struct call *c);
void v1_alerts_test(struct call *c);
