/* rule.c - see rule.h. */
#include "alert/rule.h"
#include "base/cleanup.h"
#include "metrics/metrics.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DAY 86400
#define SHIPPED .enabled = 1, .shipped = 1

const struct alert_rule alert_shipped[] = {
	/* clang-format off */
	{ .name = "failures", .summary = "more than 5 % of the executions fail", SHIPPED,
	  .figure = "executions_total", .labels = "outcome!=ok,outcome!=stopped", .per = "executions_total",
	  .aggregate = ALERT_INCREASE, .threshold = 0.05, .min_count = 20, .window_s = 300, .for_s = 60, .cooldown_s = 1800 },
	{ .name = "latency", .summary = "executions take more than 10 s on average", SHIPPED,
	  .figure = "run_seconds", .aggregate = ALERT_MEAN, .threshold = 10, .min_count = 5, .window_s = 300, .for_s = 60, .cooldown_s = 1800 },
	{ .name = "cost", .summary = "the charges of the last 24 hours are above 100", SHIPPED,
	  .figure = "cost_total", .aggregate = ALERT_INCREASE, .threshold = 100, .window_s = DAY, .cooldown_s = DAY / 4 },
	{ .name = "quota", .summary = "requests are refused because a quota is used up", SHIPPED,
	  .figure = "quota_refusals_total", .aggregate = ALERT_INCREASE, .threshold = 0, .window_s = 300, .cooldown_s = 3600 },
	{ .name = "node", .summary = "the server has no keeper, so no box can be created", SHIPPED,
	  .figure = "keeper_up", .aggregate = ALERT_LAST, .below = 1, .threshold = 1, .for_s = 30, .cooldown_s = 600 },
	{ .name = "disk", .summary = "less than 10 % of the disk with the state folder is free", SHIPPED,
	  .figure = "host_disk_free_ratio", .aggregate = ALERT_LAST, .below = 1, .threshold = 0.1, .for_s = 60, .cooldown_s = 3600 },
	{ .name = "pool", .summary = "no boxes wait in the pool", SHIPPED,
	  .figure = "pool_boxes", .per = "pool_depth", .aggregate = ALERT_LAST, .below = 1, .threshold = 0.01, .min_count = 1, .for_s = 120, .cooldown_s = 3600 },
	{ .name = "store", .summary = "reads or writes of the database fail", SHIPPED,
	  .figure = "store_errors_total", .aggregate = ALERT_INCREASE, .threshold = 0, .window_s = 300, .cooldown_s = 1800 },
	{ .name = "restarts", .summary = "a process of the daemon ended and was started again", SHIPPED,
	  .figure = "process_restarts_total", .aggregate = ALERT_INCREASE, .threshold = 0, .window_s = 600, .cooldown_s = 600 },
	{ .name = "certificate", .summary = "the TLS certificate expires within 14 days", SHIPPED,
	  .figure = "certificate_seconds", .aggregate = ALERT_LAST, .below = 1, .threshold = 14 * DAY, .cooldown_s = DAY },
	{ .name = "miner", .summary = "a box has used all of its CPU for ten minutes without output: probably a miner", SHIPPED,
	  .figure = "suspect_boxes", .aggregate = ALERT_LAST, .threshold = 0, .cooldown_s = 3600 },
	/* clang-format on */
};
const unsigned alert_nshipped = ARRAY_LEN(alert_shipped);

static const char *const rule_aggregates[ALERT_AGGREGATES] = { "increase", "mean", "last" };

const char *alert_aggregate_name(enum alert_aggregate a)
{
	return rule_aggregates[a];
}

json_t *alert_rule_json(const struct alert_rule *r)
{
	return json_pack(
		"{s:s, s:s, s:b, s:b, s:s, s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:I, s:I, s:I}",
		"name", r->name, "summary", r->summary, "enabled", r->enabled, "shipped",
		r->shipped, "figure", r->figure, "labels", r->labels, "per", r->per, "per_labels",
		r->per_labels, "aggregate", rule_aggregates[r->aggregate], "when",
		r->below ? "below" : "above", "threshold", r->threshold, "min_count", r->min_count,
		"window_s", (json_int_t)r->window_s, "for_s", (json_int_t)r->for_s, "cooldown_s",
		(json_int_t)r->cooldown_s);
}

/* ---- from JSON ---- */

static int rule_text(char *out, size_t room, const json_t *doc, const char *name, struct err *e)
{
	const json_t *v = json_object_get(doc, name);
	const char *text = json_string_value(v);

	if (!v)
		return 0;
	if (!text || json_string_length(v) >= room)
		return err_set(e, ERR_INVALID, "%s is not a text of at most %zu bytes", name,
			       room - 1);
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			return err_set(e, ERR_INVALID, "%s has the control character 0x%02x", name,
				       (unsigned char)*c);
	snprintf(out, room, "%s", text);
	return 0;
}

static int rule_number(double *out, const json_t *doc, const char *name, struct err *e)
{
	const json_t *v = json_object_get(doc, name);

	if (!v)
		return 0;
	if (!json_is_number(v) || !isfinite(json_number_value(v)) ||
	    fabs(json_number_value(v)) > 1e18)
		return err_set(e, ERR_INVALID, "%s is not a number up to 1e18", name);
	*out = json_number_value(v);
	return 0;
}

static int rule_seconds(uint32_t *out, const json_t *doc, const char *name, uint32_t least,
			struct err *e)
{
	const json_t *v = json_object_get(doc, name);
	json_int_t n = json_integer_value(v);

	if (!v)
		return 0;
	if (!json_is_integer(v) || n < least || n > 366 * DAY)
		return err_set(e, ERR_INVALID, "%s is not a number of seconds from %u to a year",
			       name, least);
	*out = (uint32_t)n;
	return 0;
}

static int rule_words(struct alert_rule *r, const json_t *doc, struct err *e)
{
	const char *aggregate = json_string_value(json_object_get(doc, "aggregate")),
		   *when = json_string_value(json_object_get(doc, "when"));
	unsigned i = 0;

	while (aggregate && i < ALERT_AGGREGATES && strcmp(aggregate, rule_aggregates[i]) != 0)
		i++;
	if (i == ALERT_AGGREGATES)
		return err_set(e, ERR_INVALID, "aggregate: '%.20s' is not increase, mean or last",
			       aggregate);
	if (aggregate)
		r->aggregate = (enum alert_aggregate)i;
	if (when && strcmp(when, "above") != 0 && strcmp(when, "below") != 0)
		return err_set(e, ERR_INVALID, "when: '%.20s' is not above or below", when);
	if (when)
		r->below = strcmp(when, "below") == 0;
	if (json_object_get(doc, "enabled"))
		r->enabled = json_is_true(json_object_get(doc, "enabled"));
	return 0;
}

static int rule_check_figure(const char *name, const char *labels, const struct alert_rule *r,
			     struct err *e)
{
	const struct metric_def *d = metric_find(name);
	struct metrics_filter f;

	if (!d)
		return err_set(e, ERR_INVALID, "there is no figure '%.64s'; see GET /v1/stats",
			       name);
	if (r->aggregate == ALERT_INCREASE && d->type == METRIC_GAUGE)
		return err_set(e, ERR_INVALID, "%s is a gauge: its aggregate is mean or last",
			       name);
	if (r->aggregate == ALERT_MEAN && d->type == METRIC_COUNTER)
		return err_set(e, ERR_INVALID, "%s is a counter: its aggregate is increase", name);
	if (r->aggregate == ALERT_LAST && d->type == METRIC_HISTOGRAM)
		return err_set(e, ERR_INVALID,
			       "%s is a histogram: its aggregate is mean or increase", name);
	return metrics_filter_parse(&f, d, labels, e);
}

int alert_rule_read(struct alert_rule *r, const json_t *doc, struct err *e)
{
	struct alert_rule x = *r;

	if (rule_text(x.summary, sizeof(x.summary), doc, "summary", e) < 0 ||
	    rule_text(x.figure, sizeof(x.figure), doc, "figure", e) < 0 ||
	    rule_text(x.labels, sizeof(x.labels), doc, "labels", e) < 0 ||
	    rule_text(x.per, sizeof(x.per), doc, "per", e) < 0 ||
	    rule_text(x.per_labels, sizeof(x.per_labels), doc, "per_labels", e) < 0 ||
	    rule_number(&x.threshold, doc, "threshold", e) < 0 ||
	    rule_number(&x.min_count, doc, "min_count", e) < 0 ||
	    rule_seconds(&x.window_s, doc, "window_s", 1, e) < 0 ||
	    rule_seconds(&x.for_s, doc, "for_s", 0, e) < 0 ||
	    rule_seconds(&x.cooldown_s, doc, "cooldown_s", 0, e) < 0 || rule_words(&x, doc, e) < 0)
		return -1;
	if (rule_check_figure(x.figure, x.labels, &x, e) < 0 ||
	    (x.per[0] && rule_check_figure(x.per, x.per_labels, &x, e) < 0))
		return -1;
	*r = x;
	return 0;
}

int alert_rule_check_name(const char *name, struct err *e)
{
	size_t n = strlen(name);

	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
			n = 0;
	return n && n <= ALERT_NAME
		       ? 0
		       : err_set(e, ERR_INVALID,
				 "'%.40s' is not a name of letters, digits, '.', '_' and '-'",
				 name);
}
