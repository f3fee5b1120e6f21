/* budget.c - see budget.h. */
#include "api/budget.h"
#include "api/quota.h"
#include "usage/period.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUDGET_REREAD_MS = 60000 };
enum budget_period { BUDGET_DAY, BUDGET_MONTH, BUDGET_PERIODS };
static const char *const budget_names[] = { [BUDGET_DAY] = "day", [BUDGET_MONTH] = "month" };

struct budget {
	struct budget *next;
	char team[STORE_NAME + 1];
	int32_t day; /* of the sums */
	uint64_t read_ms;
	uint64_t spent[BUDGET_PERIODS]; /* 10^-9 */
	unsigned told[BUDGET_PERIODS];  /* the highest percentage of which an event was sent */
};

static uint64_t budget_limit(const struct plan *p, enum budget_period i)
{
	uint64_t n = !p ? 0 : i == BUDGET_DAY ? p->budget_per_day_nano : p->budget_per_month_nano;

	return n == PLAN_NONE ? 0 : n;
}

static int budget_any(const struct plan *p)
{
	return budget_limit(p, BUDGET_DAY) || budget_limit(p, BUDGET_MONTH);
}

static int32_t budget_since(enum budget_period i, int32_t day)
{
	return i == BUDGET_DAY ? day : period_month(day);
}

static void budget_read(struct api *a, struct budget *b)
{
	int32_t day = store_day(fleet_now_ns());
	struct err e;

	for (unsigned i = 0; i < BUDGET_PERIODS; i++) {
		if (b->day != day)
			b->told[i] = 0;
		(void)!store_usage_cost(a->store, b->team, a->conf.rates.currency,
					budget_since((enum budget_period)i, day), day, &b->spent[i],
					&e);
	}
	b->day = day;
	b->read_ms = loop_now_ms();
}

static struct budget *budget_find(struct api *a, const char *team)
{
	struct budget *b = a->budgets;

	while (b && strcmp(b->team, team) != 0)
		b = b->next;
	return b;
}

static struct budget *budget_enter(struct api *a, const char *team)
{
	struct budget *b = calloc(1, sizeof(*b));

	if (!b)
		abort();
	snprintf(b->team, sizeof(b->team), "%s", team);
	b->next = a->budgets;
	a->budgets = b;
	budget_read(a, b);
	return b;
}

/* NULL: the team has no budget. *out_plan is its plan. */
static struct budget *budget_of(struct api *a, const char *team, const struct plan **out_plan)
{
	struct budget *b;

	*out_plan = quota_plan(a, team);
	if (!budget_any(*out_plan))
		return NULL;
	run_writer_flush(&a->fleet.run_writer); /* so that programs that have just ended count */
	b = budget_find(a, team);
	if (!b)
		return budget_enter(a, team);
	if (b->day != store_day(fleet_now_ns()) || loop_now_ms() - b->read_ms > BUDGET_REREAD_MS)
		budget_read(a, b);
	return b;
}

/* Called within the transaction of the charge: a sum that is read now contains it. */
static void budget_charged(void *ctx, const char *team, const struct store_use *use)
{
	struct api *a = ctx;
	struct budget *b = budget_find(a, team);

	if (!b && budget_any(quota_plan(a, team)))
		budget_enter(a, team);
	else if (b && !strcmp(use->currency, a->conf.rates.currency))
		for (unsigned i = 0; i < BUDGET_PERIODS; i++)
			b->spent[i] += use->cost_nano;
}

void budget_init(struct api *a)
{
	a->fleet.accounts.charged = budget_charged;
}

void budget_changed(struct api *a, const char *team)
{
	for (struct budget **at = &a->budgets, *b; (b = *at); at = &b->next)
		if (!strcmp(b->team, team)) {
			*at = b->next;
			free(b);
			return;
		}
}

void budget_fini(struct api *a)
{
	while (a->budgets)
		budget_changed(a, a->budgets->team);
}

/* ---- events ---- */

static void budget_emit(struct api *a, const struct budget *b, const struct plan *p,
			enum budget_period i, unsigned percent)
{
	char spent[RATES_TEXT], limit[RATES_TEXT], since[PERIOD_TEXT];

	fleet_emit(&a->fleet, b->team, "",
		   percent >= PLAN_FULL ? "budget.exceeded" : "budget.warning",
		   json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:s}", "period", budget_names[i],
			     "since", period_text(budget_since(i, b->day), since), "spent",
			     rates_decimal(b->spent[i], 9, spent), "limit",
			     rates_decimal(budget_limit(p, i), 9, limit), "currency",
			     a->conf.rates.currency, "plan", p->name, "percent", (int)percent,
			     "action", p->budget_action == PLAN_WARN ? "warn" : "refuse"));
}

static void budget_look(struct api *a, struct budget *b, const struct plan *p, enum budget_period i)
{
	uint64_t limit = budget_limit(p, i);
	unsigned percent;
	struct err e;
	int is_new;

	if (!limit)
		return;
	percent = plan_budget_percent(b->spent[i], limit);
	if (percent <= b->told[i])
		return;
	/* The store knows what an earlier server has sent. */
	if (store_budget_notice(a->store, b->team, budget_names[i], budget_since(i, b->day),
				percent, &is_new, &e) < 0)
		return;
	b->told[i] = percent;
	if (is_new)
		budget_emit(a, b, p, i, percent);
}

void budget_second(struct api *a)
{
	for (struct budget *b = a->budgets; b; b = b->next) {
		const struct plan *p = quota_plan(a, b->team);

		if (b->day != store_day(fleet_now_ns()))
			budget_read(a, b);
		for (unsigned i = 0; i < BUDGET_PERIODS; i++)
			budget_look(a, b, p, (enum budget_period)i);
	}
}

/* ---- refusing ---- */

int budget_check(struct api *a, const char *team, struct err *e)
{
	const struct plan *p;
	struct budget *b = budget_of(a, team, &p);
	char spent[RATES_TEXT], limit[RATES_TEXT];

	for (unsigned i = 0; b && i < BUDGET_PERIODS; i++) {
		uint64_t most = budget_limit(p, (enum budget_period)i);

		if (!most || b->spent[i] < most || p->budget_action == PLAN_WARN)
			continue;
		return err_set(e, ERR_LIMIT,
			       "the budget of team %.64s for this %s is spent: %s of %s %s", team,
			       budget_names[i], rates_decimal(b->spent[i], 9, spent),
			       rates_decimal(most, 9, limit), a->conf.rates.currency);
	}
	return 0;
}

int budget_request(struct call *c)
{
	struct err e;

	if (budget_check(c->api, c->who.team, &e) == 0)
		return 1;
	c->api->quota_refusals[QUOTA_BUDGET]++;
	call_error(
		c, 402, "budget", e.msg, NULL,
		"days and months begin at 00:00 UTC; an owner of team default can choose another plan: "
		"PUT /v1/teams/NAME {\"plan\": \"...\"}");
	return 0;
}

json_t *budget_json(struct api *a, const char *team, uint64_t spent_day, uint64_t spent_month)
{
	const uint64_t spent[BUDGET_PERIODS] = {
		[BUDGET_DAY] = spent_day, [BUDGET_MONTH] = spent_month
	};
	const struct plan *p = quota_plan(a, team);
	json_t *doc = budget_any(p) ? json_object() : NULL;
	char amount[RATES_TEXT], text[RATES_TEXT];

	for (unsigned i = 0; doc && i < BUDGET_PERIODS; i++) {
		uint64_t limit = budget_limit(p, (enum budget_period)i);

		if (limit)
			json_object_set_new(doc, budget_names[i],
					    json_pack("{s:s, s:s, s:s}", "amount",
						      rates_decimal(spent[i], 9, amount), "limit",
						      rates_decimal(limit, 9, text), "currency",
						      a->conf.rates.currency));
	}
	return doc;
}
