/* plan.c - see plan.h. */
#include "usage/plan.h"
#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/units.h"
#include "usage/rates.h"

#include <stddef.h>
#include <string.h>

enum plan_type { PLAN_COUNT, PLAN_SIZE, PLAN_TIME, PLAN_MONEY, PLAN_WORD };

static const struct {
	const char *name;
	enum plan_type type;
	size_t at; /* a uint64_t of struct plan */
} plan_rows[] = {
	/* clang-format off */
	{ "boxes", PLAN_COUNT, offsetof(struct plan, boxes) },
	{ "executions_per_day", PLAN_COUNT, offsetof(struct plan, executions_per_day) },
	{ "compute_seconds_per_month", PLAN_COUNT, offsetof(struct plan, compute_seconds_per_month) },
	{ "output_bytes_per_day", PLAN_SIZE, offsetof(struct plan, output_bytes_per_day) },
	{ "requests_per_second", PLAN_COUNT, offsetof(struct plan, requests_per_second) },
	{ "max_run_time", PLAN_TIME, offsetof(struct plan, max_run_time_ms) },
	{ "max_lifetime", PLAN_TIME, offsetof(struct plan, max_lifetime_ms) },
	{ "retention_boxes", PLAN_TIME, offsetof(struct plan, retention_boxes_ms) },
	{ "retention_records", PLAN_TIME, offsetof(struct plan, retention_records_ms) },
	{ "retention_outputs", PLAN_TIME, offsetof(struct plan, retention_outputs_ms) },
	{ "budget_per_day", PLAN_MONEY, offsetof(struct plan, budget_per_day_nano) },
	{ "budget_per_month", PLAN_MONEY, offsetof(struct plan, budget_per_month_nano) },
	{ "budget_action", PLAN_WORD, offsetof(struct plan, budget_action) },
	/* clang-format on */
};

int plan_is_name(const char *name)
{
	size_t n = strlen(name);

	return n && n <= STORE_NAME &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == n && *name != '-';
}

static int plan_number(enum plan_type type, const char *text, uint64_t *out, struct err *e)
{
	uint32_t small = 0;
	int rc;

	if (!strcmp(text, "none")) {
		*out = PLAN_NONE;
		return 0;
	}
	if (type == PLAN_SIZE)
		return units_parse_size(text, out, e);
	if (type == PLAN_MONEY) {
		if (rates_parse_amount(text, out, e) < 0)
			return -1;
		/* 0 would mean that the plan has no budget. */
		return *out ? 0
			    : err_set(e, ERR_INVALID, "'%.40s': a budget is above 0, or none",
				      text);
	}
	rc = type == PLAN_TIME ? units_parse_time(text, &small, e)
			       : units_parse_count(text, UINT32_MAX, &small, e);
	*out = small;
	return rc;
}

static int plan_unknown(const char *setting, struct err *e)
{
	const char *names[ARRAY_LEN(plan_rows) + 1] = { 0 }, *close;

	for (unsigned i = 0; i < ARRAY_LEN(plan_rows); i++)
		names[i] = plan_rows[i].name;
	close = suggest_nearest(setting, names);
	return err_set(e, ERR_NOT_FOUND, "no setting named '%.40s'%s%s%s", setting,
		       close ? "; did you mean '" : "", close ? close : "", close ? "'?" : "");
}

int plan_set(struct plan *p, const char *setting, const char *text, struct err *e)
{
	for (unsigned i = 0; i < ARRAY_LEN(plan_rows); i++) {
		uint64_t n;

		if (strcmp(plan_rows[i].name, setting) != 0)
			continue;
		if (plan_rows[i].type != PLAN_WORD) {
			if (plan_number(plan_rows[i].type, text, &n, e) < 0)
				return err_in(e, "%s", setting);
		} else if (!strcmp(text, "refuse") || !strcmp(text, "warn")) {
			n = *text == 'w' ? PLAN_WARN : PLAN_REFUSE;
		} else {
			return err_set(e, ERR_INVALID, "%s: '%.40s' is not one of refuse, warn",
				       setting, text);
		}
		*(uint64_t *)(void *)((char *)p + plan_rows[i].at) = n;
		return 0;
	}
	return plan_unknown(setting, e);
}

const struct plan *plan_find(const struct plan *all, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(all[i].name, name))
			return &all[i];
	return NULL;
}

uint64_t plan_lower(uint64_t plan, uint64_t otherwise)
{
	if (!plan || plan == PLAN_NONE)
		return otherwise;
	return !otherwise || plan < otherwise ? plan : otherwise;
}

uint64_t plan_quota(uint64_t own, uint64_t plan, uint64_t otherwise)
{
	uint64_t n = own ? own : plan ? plan : otherwise;

	return n == PLAN_NONE ? 0 : n;
}

unsigned plan_budget_percent(uint64_t spent, uint64_t limit)
{
	unsigned __int128 part = (unsigned __int128)spent * 100;

	return spent >= limit                                    ? PLAN_FULL
	       : part >= (unsigned __int128)limit * PLAN_WARNING ? PLAN_WARNING
								 : 0;
}
