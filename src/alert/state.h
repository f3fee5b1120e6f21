/* state.h - the state of an alert: a pure function of its rule, its last state and a new value.
 *
 *   ok ── breached ──► pending ── for_s long ──► firing ── good for for_s ──► ok, "resolved"
 *    ▲                    │ good
 *    └────────────────────┘
 * An alert that fired less than cooldown_s ago stays pending: a value that alternates is reported once
 * in that time. */
#pragma once
#include "alert/rule.h"

enum alert_phase { ALERT_OK, ALERT_PENDING, ALERT_FIRING };

struct alert_state { /* zeroed: ok, has never fired */
	enum alert_phase phase;
	int64_t since_ns; /* of pending and firing */
	int64_t good_ns;  /* while firing: since when the value is good; 0: it is not */
	int64_t fired_ns; /* last; 0: never */
};

struct alert_sample {
	int known; /* there is a value */
	double value, count;
};

enum alert_change {
	ALERT_SAME,
	ALERT_BEGAN,    /* ok -> pending */
	ALERT_ENDED,    /* pending -> ok */
	ALERT_FIRED,    /* pending or ok -> firing */
	ALERT_RESOLVED, /* firing -> ok */
};

int alert_is_breached(const struct alert_rule *r, const struct alert_sample *s);
enum alert_change alert_step(const struct alert_rule *r, struct alert_state *st,
			     const struct alert_sample *s, int64_t now_ns);
