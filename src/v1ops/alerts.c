/* alerts.c - see alerts.h. */
#include "v1ops/alerts.h"
#include "alert/alerts.h"
#include "record/record.h"
#include "store/alerts.h"

#include <stdio.h>

static const struct field aggregate_values[] = {
	FIELD_VALUE("increase"), FIELD_VALUE("mean"), FIELD_VALUE("last"), { 0 }
};
static const struct field when_values[] = { FIELD_VALUE("above"), FIELD_VALUE("below"), { 0 } };

const struct field v1_alerts_query[] = {
	{ "open", FIELD_BOOL, 0, 0, 0, "only pending and firing alerts", NULL },
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)",
	  NULL },
	{ "after", FIELD_INT, 0, 0, INT64_MAX, "`next` of the previous page", NULL },
	{ 0 },
};
const struct field v1_alert_rule_fields[] = {
	/* clang-format off */
	{ "summary", FIELD_TEXT, 0, 0, ALERT_SUMMARY, "what the alert means", NULL },
	{ "enabled", FIELD_BOOL, 0, 0, 0, "false: it never fires", NULL },
	{ "figure", FIELD_TEXT, 0, 0, ALERT_NAME, "name of a figure, as in GET /v1/stats; a new rule needs one", NULL },
	{ "labels", FIELD_TEXT, 0, 0, ALERT_LABELS, "which series of it: language=python,outcome!=ok", NULL },
	{ "per", FIELD_TEXT, 0, 0, ALERT_NAME, "the value is divided by that of this figure", NULL },
	{ "per_labels", FIELD_TEXT, 0, 0, ALERT_LABELS, "which series of that", NULL },
	{ "aggregate", FIELD_CHOICE, 0, 0, 0, "increase in the window, mean in the window, or last value", aggregate_values },
	{ "when", FIELD_CHOICE, 0, 0, 0, "above or below the threshold", when_values },
	{ "threshold", FIELD_ANY, 0, 0, 0, "a number", NULL },
	{ "min_count", FIELD_ANY, 0, 0, 0, "fewer values in the window are no problem", NULL },
	{ "window_s", FIELD_INT, 0, 1, 366 * 86400, "seconds over which the value is computed", NULL },
	{ "for_s", FIELD_INT, 0, 0, 366 * 86400, "seconds until it fires, and until it is resolved", NULL },
	{ "cooldown_s", FIELD_INT, 0, 0, 366 * 86400, "seconds between two firings", NULL },
	{ 0 },
	/* clang-format on */
};

/* 0: the caller is not an operator, and that was answered. */
static int alerts_may(struct call *c)
{
	if (principal_is_operator(&c->who))
		return 1;
	call_error(c, 403, "denied", "alerts are about the whole daemon", NULL,
		   "owners of team default see them");
	return 0;
}

static json_t *alert_time(int64_t ns)
{
	return ns ? json_time((uint64_t)ns) : json_null();
}

static json_t *alert_json(const struct store_alert *a)
{
	return json_pack("{s:I, s:s, s:s, s:s, s:f, s:f, s:o, s:o, s:o}", "id", (json_int_t)a->id,
			 "rule", a->rule, "state", a->state, "summary", a->summary, "value",
			 a->value, "threshold", a->threshold, "pending", alert_time(a->pending_ns),
			 "fired", alert_time(a->fired_ns), "resolved", alert_time(a->resolved_ns));
}

void v1_alerts_list(struct call *c)
{
	struct store_alerts rows = { 0 };
	char next[24] = "";
	json_t *items;
	struct err e;

	if (!alerts_may(c))
		return;
	if (store_alert_list(c->api->store, call_query_flag(c, "open"),
			     call_query_int(c, "after", 0), (unsigned)call_query_int(c, "limit", 0),
			     &rows, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	items = json_array();
	for (unsigned i = 0; i < rows.n; i++)
		json_array_append_new(items, alert_json(&rows.v[i]));
	if (rows.more)
		snprintf(next, sizeof(next), "%lld", (long long)rows.v[rows.n - 1].id);
	store_alerts_fini(&rows);
	call_list(c, items, next);
}

/* ---- rules ---- */

static json_t *alert_rule_doc(struct call *c, const struct alert_rule *r)
{
	json_t *doc = alert_rule_json(r);
	double value;

	json_object_set_new(doc, "value",
			    alerts_value(c->api->alerts, r, &value) ? json_real(value)
								    : json_null());
	return doc;
}

void v1_alerts_rules(struct call *c)
{
	const struct alert_rule *rules[ALERT_RULES];
	unsigned n;
	json_t *items;

	if (!alerts_may(c))
		return;
	n = alerts_rules(c->api->alerts, rules);
	items = json_array();
	for (unsigned i = 0; i < n; i++)
		json_array_append_new(items, alert_rule_doc(c, rules[i]));
	call_list(c, items, NULL);
}

void v1_alerts_set_rule(struct call *c)
{
	struct err e;

	if (!alerts_may(c))
		return;
	if (alerts_set_rule(c->api->alerts, call_param(c, 0), c->body, &e) < 0)
		call_fail(c, &e);
	else
		call_json(c, 200, alert_rule_doc(c, alerts_find(c->api->alerts, call_param(c, 0))));
}

void v1_alerts_reset_rule(struct call *c)
{
	struct err e;

	if (!alerts_may(c))
		return;
	if (alerts_reset_rule(c->api->alerts, call_param(c, 0), &e) < 0)
		call_fail(c, &e);
	else
		call_empty(c, 204);
}

/* ---- notices ---- */

void v1_alerts_notices(struct call *c)
{
	struct store_notices rows = { 0 };
	json_t *items;
	struct err e;

	if (!alerts_may(c))
		return;
	if (store_notice_list(c->api->store, &rows, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	items = json_array();
	for (unsigned i = 0; i < rows.n; i++)
		json_array_append_new(items, json_pack("{s:I, s:s, s:I, s:o, s:s}", "alert",
						       (json_int_t)rows.v[i].alert, "channel",
						       rows.v[i].channel, "attempts",
						       (json_int_t)rows.v[i].attempts, "queued",
						       alert_time(rows.v[i].queued_ns), "error",
						       rows.v[i].error));
	store_notices_fini(&rows);
	call_list(c, items, NULL);
}

void v1_alerts_test(struct call *c)
{
	json_t *channels;
	struct err e;

	if (!alerts_may(c))
		return;
	channels = alerts_channels(c->api->alerts);
	if (!json_array_size(channels)) {
		json_decref(channels);
		call_error(
			c, 409, "conflict", "alerts have no channel", NULL,
			"set alerts.webhook, alerts.mail_server or alerts.command in the settings");
		return;
	}
	if (alerts_test(c->api->alerts, &e) < 0) {
		json_decref(channels);
		call_fail(c, &e);
		return;
	}
	call_json(c, 202, json_pack("{s:o}", "channels", channels));
}
