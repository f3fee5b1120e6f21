/* Plans: their settings, and which of several limits is in effect. */
#include "usage/plan.h"
#include "base/cleanup.h"
#include "tap.h"

static struct err err;

TEST(every_setting_of_a_plan_is_read)
{
	struct plan p = { 0 };

	CHECK_INT(plan_set(&p, "boxes", "3", &err), 0);
	CHECK_INT(plan_set(&p, "executions_per_day", "50", &err), 0);
	CHECK_INT(plan_set(&p, "compute_seconds_per_month", "7200", &err), 0);
	CHECK_INT(plan_set(&p, "output_bytes_per_day", "100M", &err), 0);
	CHECK_INT(plan_set(&p, "requests_per_second", "none", &err), 0);
	CHECK_INT(plan_set(&p, "max_run_time", "30s", &err), 0);
	CHECK_INT(plan_set(&p, "max_lifetime", "1h", &err), 0);
	CHECK_INT(plan_set(&p, "retention_boxes", "24h", &err), 0);
	CHECK_INT(plan_set(&p, "retention_records", "168h", &err), 0);
	CHECK_INT(plan_set(&p, "retention_outputs", "none", &err), 0);
	CHECK_INT(plan_set(&p, "budget_per_day", "1.5", &err), 0);
	CHECK_INT(plan_set(&p, "budget_per_month", "20", &err), 0);
	CHECK_INT(plan_set(&p, "budget_action", "warn", &err), 0);
	CHECK_INT(p.boxes, 3);
	CHECK_INT(p.executions_per_day, 50);
	CHECK_INT(p.compute_seconds_per_month, 7200);
	CHECK_INT(p.output_bytes_per_day, 100 << 20);
	CHECK(p.requests_per_second == PLAN_NONE);
	CHECK_INT(p.max_run_time_ms, 30000);
	CHECK_INT(p.max_lifetime_ms, 3600000);
	CHECK_INT(p.retention_boxes_ms, 86400000);
	CHECK_INT(p.retention_records_ms, 604800000);
	CHECK(p.retention_outputs_ms == PLAN_NONE);
	CHECK_INT(p.budget_per_day_nano, 1500000000);
	CHECK_INT(p.budget_per_month_nano, 20000000000);
	CHECK_INT(p.budget_action, PLAN_WARN);
}

TEST(a_bad_setting_of_a_plan_is_rejected_with_its_name)
{
	static const struct {
		const char *name, *text, *says;
	} bad[] = {
		{ "boxes", "-1", "boxes: " },
		{ "boxes", "many", "boxes: " },
		{ "boxes", "", "boxes: " },
		{ "max_run_time", "forever", "max_run_time: " },
		{ "budget_per_day", "-5", "is not a decimal number" },
		{ "budget_per_day", "NaN", "is not a decimal number" },
		{ "budget_per_day", "1e30", "is not a decimal number" },
		{ "budget_per_day", "1000000000000000000000000000000", "is out of range" },
		{ "budget_per_day", "0", "a budget is above 0, or none" },
		{ "budget_action", "stop", "is not one of refuse, warn" },
		{ "budget_per_dya", "5", "did you mean 'budget_per_day'?" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		struct plan p = { 0 }, nothing = { 0 };

		CHECK_INT(plan_set(&p, bad[i].name, bad[i].text, &err), -1);
		CHECK(strstr(err.msg, bad[i].says));
		CHECK(!memcmp(&p, &nothing, sizeof(p)));
	}
}

TEST(a_quota_of_the_team_comes_before_that_of_its_plan_and_of_the_settings)
{
	CHECK_INT(plan_quota(1, 2, 3), 1);
	CHECK_INT(plan_quota(0, 2, 3), 2);
	CHECK_INT(plan_quota(0, 0, 3), 3);
	CHECK_INT(plan_quota(0, 0, 0), 0);
	CHECK_INT(plan_quota(PLAN_NONE, 2, 3), 0);
	CHECK_INT(plan_quota(0, PLAN_NONE, 3), 0);
	CHECK_INT(plan_quota(5, PLAN_NONE, 3), 5);
}

TEST(of_two_upper_limits_the_lower_one_is_in_effect)
{
	CHECK_INT(plan_lower(0, 0), 0);
	CHECK_INT(plan_lower(5, 0), 5);
	CHECK_INT(plan_lower(0, 7), 7);
	CHECK_INT(plan_lower(5, 7), 5);
	CHECK_INT(plan_lower(9, 7), 7);
	CHECK_INT(plan_lower(PLAN_NONE, 7), 7);
}

TEST(the_name_of_a_plan_has_lower_case_letters)
{
	static const char *const bad[] = { "", "Free", "a b", "a.b", "-a", "\xc3\xa9", "a/b" };

	CHECK(plan_is_name("free"));
	CHECK(plan_is_name("pro-2_x"));
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!plan_is_name(bad[i]));
}

TEST(a_budget_warns_at_80_percent_exactly)
{
	static const struct {
		uint64_t spent, limit;
		unsigned percent;
	} rows[] = {
		{ 0, 1, 0 },
		{ 1, 1, 100 },
		{ 0, 99, 0 },
		{ 79, 99, 0 },
		{ 80, 99, 80 },
		{ 799, 1000, 0 },
		{ 800, 1000, 80 },
		{ 999, 1000, 80 },
		{ 1000, 1000, 100 },
		{ 1001, 1000, 100 },
		{ UINT64_C(800000000000000000), UINT64_C(1000000000000000000), 80 },
		{ UINT64_C(799999999999999999), UINT64_C(1000000000000000000), 0 },
		{ UINT64_MAX, UINT64_C(1000000000000000000), 100 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		CHECK_INT(plan_budget_percent(rows[i].spent, rows[i].limit), rows[i].percent);
}
