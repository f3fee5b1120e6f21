/* alerts.h - alerts and their times, rules that the operator has changed, notices that wait. */
#pragma once
#include "store/store.h"
#include "store/webhooks.h"

enum { STORE_ALERTS = 10000 }; /* resolved alerts that are kept */

struct store_alert {
	int64_t id;
	char rule[STORE_NAME + 1];
	char state[STORE_WORD + 1]; /* "pending", "firing", "resolved" */
	double value, threshold;
	char summary[STORE_ERROR + 1];
	int64_t pending_ns, fired_ns, resolved_ns; /* 0: not yet */
};
struct store_alerts {
	struct store_alert *v;
	unsigned n;
	int more;
};
void store_alerts_fini(struct store_alerts *l);

/* Inserts it (id 0, which is set), or changes state, value and times. */
must_check int store_alert_put(struct store *s, struct store_alert *a, struct err *e);
must_check int store_alert_remove(struct store *s, int64_t id, struct err *e);
/* Newest first, before `before` (0: from the start). open: only pending and firing ones. */
must_check int store_alert_list(struct store *s, int open, int64_t before, unsigned limit,
				struct store_alerts *out, struct err *e);
/* The newest one of the rule; ERR_NOT_FOUND: none. */
must_check int store_alert_last(struct store *s, const char *rule, struct store_alert *out,
				struct err *e);

struct store_alert_rule {
	char name[STORE_NAME + 1];
	char *rule; /* JSON */
};
struct store_alert_rules {
	struct store_alert_rule *v;
	unsigned n;
};
void store_alert_rules_fini(struct store_alert_rules *l);
must_check int store_alert_rule_put(struct store *s, const char *name, const char *rule,
				    int64_t now_ns, struct err *e);
must_check int store_alert_rule_remove(struct store *s, const char *name, struct err *e);
must_check int store_alert_rule_list(struct store *s, struct store_alert_rules *out, struct err *e);

struct store_notice {
	int64_t id;
	int64_t alert;
	char channel[STORE_WORD + 1];
	char *body;
	unsigned attempts;
	int64_t queued_ns, next_ns;
	char error[STORE_ERROR + 1];
};
struct store_notices {
	struct store_notice *v;
	unsigned n;
};
void store_notices_fini(struct store_notices *l);
must_check int store_notice_add(struct store *s, const struct store_notice *n, struct err *e);
/* All, by id: there are few. */
must_check int store_notice_list(struct store *s, struct store_notices *out, struct err *e);
must_check int store_notice_retry(struct store *s, const struct store_notice *n, struct err *e);
must_check int store_notice_remove(struct store *s, int64_t id, struct err *e);
