/* rule.h - a rule over a figure: which one, how it is aggregated, and when it is a problem.
 * Owns: the shipped rules. All functions are pure. */
#pragma once
#include "base/err.h"
#include <jansson.h>
#include <stdint.h>

enum {
	ALERT_NAME = 64,
	ALERT_LABELS = 160,
	ALERT_SUMMARY = 200,
	ALERT_RULES = 64, /* rules in total */
};

enum alert_aggregate {
	ALERT_INCREASE, /* of a counter or of the number of values of a histogram, in the window */
	ALERT_MEAN,     /* of a gauge or a histogram, in the window */
	ALERT_LAST,     /* of a gauge, now */
	ALERT_AGGREGATES,
};

struct alert_rule {
	char name[ALERT_NAME + 1];
	char summary[ALERT_SUMMARY + 1];
	char figure[ALERT_NAME + 1], labels[ALERT_LABELS + 1]; /* as in metrics_filter_parse() */
	/* "": none. Else the value is a ratio: that of the figure divided by that of this one. */
	char per[ALERT_NAME + 1], per_labels[ALERT_LABELS + 1];
	enum alert_aggregate aggregate;
	int below; /* 1: a value below the threshold is a problem, else one above */
	double threshold;
	double min_count;  /* fewer values in the window are no problem */
	uint32_t window_s; /* of INCREASE and MEAN */
	uint32_t
		for_s; /* pending that long before it fires, and good that long before it is resolved */
	uint32_t cooldown_s; /* between two firings */
	int enabled;
	int shipped; /* it comes with Atoll; perhaps changed */
};

extern const struct alert_rule alert_shipped[];
extern const unsigned alert_nshipped;

const char *alert_aggregate_name(enum alert_aggregate a);
json_t *alert_rule_json(const struct alert_rule *r);
/* Sets the fields that doc has; name and shipped stay. ERR_INVALID: *r is unchanged. */
must_check int alert_rule_read(struct alert_rule *r, const json_t *doc, struct err *e);
must_check int alert_rule_check_name(const char *name, struct err *e);
