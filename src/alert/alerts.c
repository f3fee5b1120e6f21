/* alerts.c - see alerts.h. */
#include "alert/alerts.h"
#include "alert/internal.h"
#include "base/cleanup.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNSTORED_NS (INT64_C(3600) * 1000000000)

/* ---- values ---- */

static struct metrics_sum alerts_measure(struct alerts *x, const struct alert_rule *r,
					 const char *figure, const char *labels, int *known)
{
	const struct metric_def *d = metric_find(figure);
	struct metrics_filter f;
	struct metrics_sum s = { 0 };
	uint32_t covered;
	struct err e;

	*known = 0;
	if (!d || metrics_filter_parse(&f, d, labels, &e) < 0)
		return s;
	s = r->aggregate == ALERT_LAST ? metrics_sum(x->metrics, d, &f)
				       : metrics_change(x->metrics, d, &f, r->window_s, &covered);
	*known = s.series > 0;
	return s;
}

static struct alert_sample alerts_sample(struct alerts *x, const struct alert_rule *r)
{
	int known, has_per = r->per[0] != 0, known_per = 0;
	struct metrics_sum s = alerts_measure(x, r, r->figure, r->labels, &known), per = { 0 };
	const struct metric_def *d = metric_find(r->figure);
	struct alert_sample out = { .known = known, .value = s.value, .count = s.value };

	if (r->aggregate == ALERT_MEAN && d && d->type == METRIC_HISTOGRAM) {
		out.known = s.value > 0;
		out.value = s.value > 0 ? s.sum / s.value : 0;
	} else if (d && d->type == METRIC_GAUGE) {
		out.count = s.series;
	}
	if (!has_per)
		return out;
	per = alerts_measure(x, r, r->per, r->per_labels, &known_per);
	/* A counter without a matching series has not counted yet: 0 of them. */
	out.known = known_per && per.value > 0 && (known || r->aggregate == ALERT_INCREASE);
	out.value = per.value > 0 ? s.value / per.value : 0;
	out.count = per.value;
	return out;
}

/* ---- rows ---- */

static const char *const alerts_phases[] = {
	[ALERT_OK] = "resolved", [ALERT_PENDING] = "pending", [ALERT_FIRING] = "firing"
};

/* The row of the alert after a change; with the notices of it. */
static int alerts_store(struct alerts *x, struct alerts_rule *a, enum alert_change change,
			int64_t now_ns, struct err *e)
{
	struct store *s = x->fleet->store;

	if (change == ALERT_ENDED)
		return store_alert_remove(s, a->row.id, e);
	if (!a->row.id) {
		a->row = (struct store_alert){ .threshold = a->rule.threshold,
					       .pending_ns = now_ns };
		snprintf(a->row.rule, sizeof(a->row.rule), "%s", a->rule.name);
		snprintf(a->row.summary, sizeof(a->row.summary), "%s", a->rule.summary);
	}
	if (change != ALERT_RESOLVED)
		a->row.value = a->last.value;
	if (change == ALERT_FIRED)
		a->row.fired_ns = now_ns;
	if (change == ALERT_RESOLVED)
		a->row.resolved_ns = now_ns;
	snprintf(a->row.state, sizeof(a->row.state), "%s", alerts_phases[a->state.phase]);
	if (store_alert_put(s, &a->row, e) < 0)
		return -1;
	return change == ALERT_FIRED || change == ALERT_RESOLVED ? notices_queue(x, &a->row, e) : 0;
}

/* The database may be what the alert is about: the notice is sent without a row, once in an hour. */
static void alerts_warn_unstored(struct alerts *x, struct alerts_rule *a, int64_t now_ns)
{
	struct store_alert row = { .threshold = a->rule.threshold,
				   .value = a->last.value,
				   .pending_ns = now_ns,
				   .fired_ns = now_ns };

	if (a->warned_ns && now_ns >= a->warned_ns && now_ns - a->warned_ns < UNSTORED_NS)
		return;
	a->warned_ns = now_ns;
	snprintf(row.rule, sizeof(row.rule), "%s", a->rule.name);
	snprintf(row.summary, sizeof(row.summary), "%s", a->rule.summary);
	snprintf(row.state, sizeof(row.state), "%s", alerts_phases[ALERT_FIRING]);
	notices_send_unstored(x, &row);
}

static void alerts_changed(struct alerts *x, struct alerts_rule *a, enum alert_change change,
			   const struct alert_state *before, int64_t now_ns)
{
	struct store_alert row = a->row;
	struct err e;
	int rc = store_begin(x->fleet->store, &e);

	if (rc == 0)
		rc = alerts_store(x, a, change, now_ns, &e) < 0 ? store_rollback(x->fleet->store)
								: store_commit(x->fleet->store, &e);
	if (rc < 0) { /* tried again at the next evaluation */
		log_warn("the alert cannot be stored", LOG_S("rule", a->rule.name), LOG_E(&e));
		if (change == ALERT_FIRED)
			alerts_warn_unstored(x, a, now_ns);
		a->state = *before;
		a->row = row;
		return;
	}
	if (change == ALERT_FIRED)
		log_warn("alert", LOG_S("rule", a->rule.name), LOG_S("summary", a->rule.summary));
	else if (change == ALERT_RESOLVED)
		log_info("alert resolved", LOG_S("rule", a->rule.name));
	if (change == ALERT_RESOLVED || change == ALERT_ENDED)
		a->row = (struct store_alert){ 0 };
	notices_send(x);
}

static void alerts_tick(struct timer *t)
{
	struct alerts *x = loop_owner(t, struct alerts, tick);
	int64_t now_ns = fleet_now_ns();

	metrics_collect(x->metrics);
	for (unsigned i = 0; i < x->n; i++) {
		struct alerts_rule *a = &x->v[i];
		struct alert_state before = a->state;
		enum alert_change change;

		a->last = alerts_sample(x, &a->rule);
		change = alert_step(&a->rule, &a->state, &a->last, now_ns);
		if (change != ALERT_SAME)
			alerts_changed(x, a, change, &before, now_ns);
	}
	timer_set(t, x->conf.interval_ms);
}

/* ---- rules ---- */

static struct alerts_rule *alerts_rule_named(const struct alerts *x, const char *name)
{
	for (unsigned i = 0; i < x->n; i++)
		if (strcmp(x->v[i].rule.name, name) == 0)
			return &x->v[i];
	return NULL;
}

/* Continues with the state that the last server has stored. */
static void alerts_restore(struct alerts *x, struct alerts_rule *a)
{
	struct store_alert row;
	struct err e;

	if (store_alert_last(x->fleet->store, a->rule.name, &row, &e) < 0)
		return;
	a->state.fired_ns = row.fired_ns;
	if (strcmp(row.state, "resolved") == 0)
		return;
	a->row = row;
	a->state.phase = strcmp(row.state, "firing") == 0 ? ALERT_FIRING : ALERT_PENDING;
	a->state.since_ns = row.fired_ns ? row.fired_ns : row.pending_ns;
}

static struct alerts_rule *alerts_add(struct alerts *x, const struct alert_rule *r)
{
	struct alerts_rule *a = &x->v[x->n++];

	*a = (struct alerts_rule){ .rule = *r };
	alerts_restore(x, a);
	return a;
}

static void alerts_load(struct alerts *x)
{
	struct store_alert_rules rows = { 0 };
	struct err e;

	for (unsigned i = 0; i < alert_nshipped; i++)
		alerts_add(x, &alert_shipped[i]);
	if (store_alert_rule_list(x->fleet->store, &rows, &e) < 0)
		log_warn("changed alert rules cannot be read", LOG_E(&e));
	for (unsigned i = 0; i < rows.n; i++) {
		struct alerts_rule *a = alerts_rule_named(x, rows.v[i].name);
		json_t *doc = json_loads(rows.v[i].rule, 0, NULL);
		struct alert_rule fresh = { .enabled = 1, .window_s = 300 };

		snprintf(fresh.name, sizeof(fresh.name), "%s", rows.v[i].name);
		if (alert_rule_read(a ? &a->rule : &fresh, doc, &e) < 0)
			log_warn("alert rule", LOG_S("rule", rows.v[i].name), LOG_E(&e));
		else if (!a && x->n < ALERT_RULES)
			alerts_add(x, &fresh);
		json_decref(doc);
	}
	store_alert_rules_fini(&rows);
}

unsigned alerts_rules(const struct alerts *x, const struct alert_rule **out)
{
	for (unsigned i = 0; i < x->n; i++)
		out[i] = &x->v[i].rule;
	return x->n;
}

const struct alert_rule *alerts_find(const struct alerts *x, const char *name)
{
	const struct alerts_rule *a = alerts_rule_named(x, name);

	return a ? &a->rule : NULL;
}

int alerts_value(const struct alerts *x, const struct alert_rule *r, double *out)
{
	const struct alerts_rule *a = alerts_rule_named(x, r->name);

	*out = a ? a->last.value : 0;
	return a && a->last.known;
}

int alerts_set_rule(struct alerts *x, const char *name, const json_t *doc, struct err *e)
{
	struct alerts_rule *a = alerts_rule_named(x, name);
	struct alert_rule fresh = { .enabled = 1, .window_s = 300, .cooldown_s = 1800 };
	json_t *whole;
	char *text;
	int rc;

	if (alert_rule_check_name(name, e) < 0)
		return -1;
	if (!a && x->n == ALERT_RULES)
		return err_set(e, ERR_LIMIT, "there are %d rules, which is the most", ALERT_RULES);
	if (a)
		fresh = a->rule;
	snprintf(fresh.name, sizeof(fresh.name), "%s", name);
	if (alert_rule_read(&fresh, doc, e) < 0)
		return -1;
	whole = alert_rule_json(&fresh);
	text = json_dumps(whole, JSON_COMPACT);
	json_decref(whole);
	rc = store_alert_rule_put(x->fleet->store, name, text, fleet_now_ns(), e);
	free(text);
	if (rc < 0)
		return -1;
	if (a)
		a->rule = fresh;
	else
		alerts_add(x, &fresh);
	return 0;
}

/* An alert of a rule that is deleted is resolved. */
static void alerts_drop(struct alerts *x, struct alerts_rule *a)
{
	struct alert_state before = a->state;

	a->rule.enabled = 0;
	if (a->state.phase != ALERT_OK)
		alerts_changed(x, a,
			       alert_step(&a->rule, &a->state, &(struct alert_sample){ 0 },
					  fleet_now_ns()),
			       &before, fleet_now_ns());
	*a = x->v[--x->n];
}

int alerts_reset_rule(struct alerts *x, const char *name, struct err *e)
{
	struct alerts_rule *a = alerts_rule_named(x, name);

	if (store_alert_rule_remove(x->fleet->store, name, e) < 0)
		return -1;
	if (!a)
		return 0;
	for (unsigned i = 0; i < alert_nshipped; i++)
		if (strcmp(alert_shipped[i].name, name) == 0) {
			a->rule = alert_shipped[i];
			return 0;
		}
	alerts_drop(x, a);
	return 0;
}

/* ---- life ---- */

struct alerts *alerts_new(struct fleet *f, struct metrics *m, struct outbound *o,
			  const struct alerts_conf *conf)
{
	struct alerts *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	*x = (struct alerts){ .fleet = f, .metrics = m, .outbound = o, .conf = *conf };
	x->v = calloc(ALERT_RULES, sizeof(*x->v));
	if (!x->v)
		abort();
	timer_init_late(&x->tick, f->loop, alerts_tick);
	notices_init(x);
	return x;
}

void alerts_start(struct alerts *x)
{
	if (x->running)
		return;
	x->running = 1;
	alerts_load(x);
	timer_set(&x->tick, x->conf.interval_ms);
	notices_send(x);
}

void alerts_stop(struct alerts *x)
{
	timer_clear(&x->tick);
	notices_stop(x);
	x->running = 0;
	x->n = 0;
}

void alerts_free(struct alerts *x)
{
	if (!x)
		return;
	alerts_stop(x);
	timer_fini(&x->tick);
	timer_fini(&x->send);
	for (unsigned i = 0; i < ALERT_CHANNELS; i++)
		timer_fini(&x->deliveries[i].limit);
	free(x->v);
	free(x);
}
