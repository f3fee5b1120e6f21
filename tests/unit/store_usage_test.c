/* Usage: rows by day, and the totals of boxes, batches and pipelines. */
#include "store/usage.h"
#include "store/history.h"
#include "store/runs.h"
#include "store/teams.h"
#include "store_dir.h"

static struct store_charge charge_of(int32_t day, const char *team, const char *tag, uint64_t cost)
{
	struct store_charge c = { .day = day,
				  .use = { .runs = 1,
					   .cpu_us = 3,
					   .memory_mib_ms = 5,
					   .network_bytes = 7,
					   .output_bytes = 11,
					   .cost_nano = cost,
					   .currency = "EUR" } };

	snprintf(c.team, sizeof(c.team), "%s", team);
	snprintf(c.tag, sizeof(c.tag), "%s", tag);
	snprintf(c.key, sizeof(c.key), "%s", cost % 2 ? "odd" : "even");
	snprintf(c.template, sizeof(c.template), "base");
	snprintf(c.runtime, sizeof(c.runtime), "python");
	return c;
}

static struct store_usage_rows list_of(struct store *s, const char *team, int32_t from, int32_t to,
				       enum store_usage_by by)
{
	struct store_usage_filter f = { .team = team, .from_day = from, .to_day = to, .by = by };
	struct store_usage_rows rows = { 0 };

	if (store_usage_list(s, &f, &rows, &err) < 0)
		printf("# %s\n", err.msg);
	return rows;
}

static uint64_t keep_of_team(void *ctx, const char *team, uint64_t keep_ns)
{
	(void)ctx;
	return !strcmp(team, "short") ? 1000 : !strcmp(team, "long") ? 0 : keep_ns;
}

TEST(charges_add_up_in_every_dimension)
{
	static const enum store_usage_by dimensions[] = { STORE_BY_TEAM,    STORE_BY_KEY,
							  STORE_BY_TAG,     STORE_BY_TEMPLATE,
							  STORE_BY_RUNTIME, STORE_BY_DAY,
							  STORE_BY_MONTH,   STORE_BY_NOTHING };
	uint64_t cost = 0, runs = 0;

	STORE(s, dir);
	for (unsigned i = 0; i < 300; i++) {
		char team[16], tag[16];
		struct store_charge c;

		snprintf(team, sizeof(team), "team%u", i % 7);
		snprintf(tag, sizeof(tag), "tag%u", i % 13);
		c = charge_of(20000 + (int32_t)(i % 40), team, i % 13 ? tag : "", i * 31);
		snprintf(c.subject, sizeof(c.subject), "%s", id_of(i % 11));
		CHECK_OK(store_usage_charge(s, &c, &err));
		cost += i * 31;
		runs++;
	}
	store_close(s);
	s = NULL;
	CHECK_OK(store_open(&s, dir, &err));
	for (unsigned i = 0; i < ARRAY_LEN(dimensions); i++) {
		struct store_usage_rows rows = list_of(s, NULL, 20000, 20039, dimensions[i]);
		struct store_use sum = { 0 };

		for (unsigned k = 0; k < rows.n; k++) {
			sum.cost_nano += rows.v[k].use.cost_nano;
			sum.runs += rows.v[k].use.runs;
			sum.cpu_us += rows.v[k].use.cpu_us;
		}
		store_usage_rows_fini(&rows);
		CHECK_INT(sum.cost_nano, cost);
		CHECK_INT(sum.runs, runs);
		CHECK_INT(sum.cpu_us, 3 * runs);
	}
	for (unsigned i = 0, total = 0; i < 11; i++) {
		struct store_use u;

		CHECK_OK(store_usage_total(s, id_of(i), "EUR", &u, &err));
		total += (unsigned)u.cost_nano;
		if (i == 10)
			CHECK_INT(total, cost);
	}
}

TEST(a_query_is_bounded_by_team_and_days)
{
	struct store_usage_rows rows;
	struct store_charge c;
	uint64_t nano;

	STORE(s, dir);
	for (int32_t day = 100; day < 110; day++)
		for (unsigned t = 0; t < 2; t++) {
			c = charge_of(day, t ? "blue" : "default", "", 10 + t);
			CHECK_OK(store_usage_charge(s, &c, &err));
		}
	rows = list_of(s, "blue", 102, 104, STORE_BY_DAY);
	CHECK_INT(rows.n, 3);
	CHECK_STR(rows.v[0].value, "1970-04-13");
	CHECK_INT(rows.v[0].use.cost_nano, 11);
	store_usage_rows_fini(&rows);
	rows = list_of(s, "blue", 104, 102, STORE_BY_DAY);
	store_usage_rows_fini(&rows);
	rows = list_of(s, "absent", 100, 200, STORE_BY_TAG);
	CHECK_INT(rows.n, 0);
	store_usage_rows_fini(&rows);
	rows = list_of(s, NULL, 100, 109, STORE_BY_TEAM);
	CHECK_INT(rows.n, 2);
	CHECK_STR(rows.v[0].value, "blue"); /* the highest cost first */
	store_usage_rows_fini(&rows);
	rows = list_of(s, "default", 100, 109, STORE_BY_MONTH);
	CHECK_INT(rows.n, 1);
	CHECK_STR(rows.v[0].value, "1970-04");
	CHECK_INT(rows.v[0].use.cost_nano, 100);
	store_usage_rows_fini(&rows);
	CHECK_OK(store_usage_cost(s, "blue", "EUR", 100, 101, &nano, &err));
	CHECK_INT(nano, 22);
	CHECK_OK(store_usage_cost(s, "blue", "USD", 100, 101, &nano, &err));
	CHECK_INT(nano, 0);
}

TEST(tags_beyond_a_thousand_of_a_day_are_counted_as_other)
{
	struct store_usage_rows rows;
	struct store_charge c;

	STORE(s, dir);
	CHECK_OK(store_begin(s, &err));
	for (unsigned i = 0; i < STORE_USAGE_VALUES + 50; i++) {
		char tag[16];

		snprintf(tag, sizeof(tag), "t%u", i);
		c = charge_of(5, "default", tag, 1);
		CHECK_OK(store_usage_charge(s, &c, &err));
	}
	c = charge_of(5, "default", "t3", 1); /* one that exists */
	CHECK_OK(store_usage_charge(s, &c, &err));
	c = charge_of(5, "blue", "mine", 1); /* another team's */
	CHECK_OK(store_usage_charge(s, &c, &err));
	c = charge_of(5, "default", STORE_TAG_BOX, 1);
	CHECK_OK(store_usage_charge(s, &c, &err));
	CHECK_OK(store_commit(s, &err));
	rows = list_of(s, "default", 5, 5, STORE_BY_TAG);
	CHECK_INT(rows.n, STORE_USAGE_VALUES + 2);
	CHECK_STR(rows.v[0].value, STORE_TAG_OTHER);
	CHECK_INT(rows.v[0].use.cost_nano, 50);
	CHECK_STR(rows.v[1].value, "t3");
	CHECK_INT(rows.v[1].use.cost_nano, 2);
	store_usage_rows_fini(&rows);
	rows = list_of(s, "blue", 5, 5, STORE_BY_TAG);
	CHECK_INT(rows.n, 1);
	CHECK_STR(rows.v[0].value, "mine");
	store_usage_rows_fini(&rows);
}

TEST(currencies_are_never_added_to_each_other)
{
	struct store_charge c = charge_of(5, "default", "", 40);
	struct store_usage_rows rows;
	struct store_use u;

	STORE(s, dir);
	snprintf(c.subject, sizeof(c.subject), "%s", id_of(1));
	CHECK_OK(store_usage_charge(s, &c, &err));
	memcpy(c.use.currency, "USD", 4);
	c.use.cost_nano = 2;
	CHECK_OK(store_usage_charge(s, &c, &err));
	rows = list_of(s, "default", 5, 5, STORE_BY_DAY);
	CHECK_INT(rows.n, 2);
	CHECK_INT(rows.v[0].use.cost_nano + rows.v[1].use.cost_nano, 42);
	CHECK(strcmp(rows.v[0].use.currency, rows.v[1].use.currency) != 0);
	store_usage_rows_fini(&rows);
	CHECK_OK(store_usage_total(s, id_of(1), "USD", &u, &err));
	CHECK_INT(u.cost_nano, 2);
	CHECK_INT(u.cpu_us, 6); /* counts have no currency */
}

TEST(a_row_does_not_grow_beyond_its_bound)
{
	struct store_charge c = charge_of(5, "default", "", UINT64_MAX);
	struct store_usage_rows rows;

	STORE(s, dir);
	for (unsigned i = 0; i < 3; i++)
		CHECK_OK(store_usage_charge(s, &c, &err));
	rows = list_of(s, "default", 5, 5, STORE_BY_DAY);
	CHECK_INT(rows.v[0].use.cost_nano, STORE_COST_MOST);
	store_usage_rows_fini(&rows);
}

TEST(the_total_of_a_box_is_removed_with_its_row)
{
	struct store_charge c = charge_of(5, "default", "", 40);
	struct store_history h = { .now_ns = 1000000, .keep_ns = 1000 };
	struct store_box b = box_of(1);
	struct store_use u;
	int rc;

	STORE(s, dir);
	CHECK_OK(store_box_insert(s, &b, &err));
	snprintf(c.subject, sizeof(c.subject), "%s", b.id);
	CHECK_OK(store_usage_charge(s, &c, &err));
	CHECK_OK(store_usage_total(s, b.id, "EUR", &u, &err));
	CHECK_INT(u.cost_nano, 40);
	CHECK_INT(u.network_bytes, 7);
	CHECK_OK(store_box_set_state(s, b.id, STORE_BOX_DELETED, "exit", 2000, &err));
	while ((rc = store_history_step(s, &h, &err)) > 0)
		;
	CHECK_INT(rc, 0);
	CHECK_INT(h.boxes, 1);
	CHECK_OK(store_usage_total(s, b.id, "EUR", &u, &err));
	CHECK_INT(u.cost_nano, 0);
}

TEST(rows_of_days_before_the_bound_are_retired_in_steps)
{
	struct store_usage_rows rows;
	unsigned n;

	STORE(s, dir);
	for (int32_t day = 0; day < 30; day++) {
		struct store_charge c = charge_of(day, "default", "", 1);

		CHECK_OK(store_usage_charge(s, &c, &err));
	}
	CHECK_OK(store_usage_retire(s, 20, 65, &n, &err)); /* of four sums for each of 20 days */
	CHECK_INT(n, 65);
	CHECK_OK(store_usage_retire(s, 20, 65, &n, &err));
	CHECK_INT(n, 15);
	CHECK_OK(store_usage_retire(s, 20, 65, &n, &err));
	CHECK_INT(n, 0);
	rows = list_of(s, NULL, 0, 40, STORE_BY_DAY);
	CHECK_INT(rows.n, 10);
	store_usage_rows_fini(&rows);
}

TEST(the_sweep_of_old_rows_retires_sums_after_400_days)
{
	struct store_history h = { .now_ns = INT64_C(86400000000000) * 1000 };
	struct store_usage_rows rows;
	int rc;

	STORE(s, dir);
	for (int32_t day = 590; day < 610; day++) {
		struct store_charge c = charge_of(day, "default", "", 1);

		CHECK_OK(store_usage_charge(s, &c, &err));
	}
	while ((rc = store_history_step(s, &h, &err)) > 0)
		;
	CHECK_INT(rc, 0);
	rows = list_of(s, NULL, 0, 1000, STORE_BY_KEY);
	CHECK_INT(rows.v[0].use.runs, 10);
	store_usage_rows_fini(&rows);
}

TEST(records_of_a_team_are_kept_for_the_time_of_its_plan)
{
	struct store_history h = { .now_ns = 100000, .keep_ns = 50000, .keep_of = keep_of_team };
	struct store_run got;
	int rc;

	STORE(s, dir);
	for (unsigned i = 0; i < 3; i++) {
		struct store_run r = { .started_ns = 1, .ended_ns = 60000, .cause = "exit" };

		snprintf(r.id, sizeof(r.id), "%s", id_of(i));
		snprintf(r.box, sizeof(r.box), "%s", id_of(9));
		snprintf(r.team, sizeof(r.team), "%s",
			 i == 0   ? "default"
			 : i == 1 ? "short"
				  : "long");
		CHECK_OK(store_run_begin(s, &r, &err));
		CHECK_OK(store_run_end(s, &r, &err));
	}
	while ((rc = store_history_step(s, &h, &err)) > 0)
		;
	CHECK_INT(rc, 0);
	CHECK_INT(h.runs, 1);
	CHECK_ERR(store_run_get(s, id_of(1), &got, &err), ERR_NOT_FOUND);
	h = (struct store_history){ .now_ns = 200000, .keep_ns = 50000, .keep_of = keep_of_team };
	while ((rc = store_history_step(s, &h, &err)) > 0)
		;
	CHECK_INT(h.runs, 1);
	CHECK_ERR(store_run_get(s, id_of(0), &got, &err), ERR_NOT_FOUND);
	CHECK_OK(store_run_get(s, id_of(2), &got, &err)); /* without limit */
	store_run_fini(&got);
}

TEST(a_notice_about_a_budget_is_new_once_in_its_period)
{
	int is_new;

	STORE(s, dir);
	CHECK_OK(store_budget_notice(s, TEAM_DEFAULT, "day", 5, 80, &is_new, &err));
	CHECK_INT(is_new, 1);
	CHECK_OK(store_budget_notice(s, TEAM_DEFAULT, "day", 5, 80, &is_new, &err));
	CHECK_INT(is_new, 0);
	CHECK_OK(store_budget_notice(s, TEAM_DEFAULT, "day", 5, 100, &is_new, &err));
	CHECK_INT(is_new, 1);
	CHECK_OK(store_budget_notice(s, TEAM_DEFAULT, "day", 5, 80, &is_new, &err));
	CHECK_INT(is_new, 0);
	CHECK_OK(store_budget_notice(s, TEAM_DEFAULT, "month", 1, 80, &is_new, &err));
	CHECK_INT(is_new, 1);
	CHECK_OK(store_budget_notice(s, TEAM_DEFAULT, "day", 6, 80, &is_new, &err));
	CHECK_INT(is_new, 1);
}

TEST(charges_of_the_same_sums_are_merged)
{
	struct store_charge a = charge_of(5, "default", "t", 40),
			    b = charge_of(5, "default", "t", 2),
			    other = charge_of(5, "default", "u", 2);
	struct store_usage_rows rows;

	STORE(s, dir);
	snprintf(b.subject, sizeof(b.subject), "%s", id_of(1));
	CHECK_INT(store_charge_merge(&a, &b), 1);
	CHECK_INT(store_charge_merge(&a, &other), 0);
	other = b;
	other.day = 6;
	CHECK_INT(store_charge_merge(&a, &other), 0);
	other = b;
	memcpy(other.use.currency, "USD", 4);
	CHECK_INT(store_charge_merge(&a, &other), 0);
	CHECK_OK(store_usage_charge_day(s, &a, &err));
	rows = list_of(s, "default", 5, 5, STORE_BY_TAG);
	CHECK_INT(rows.n, 1);
	CHECK_INT(rows.v[0].use.cost_nano, 42);
	CHECK_INT(rows.v[0].use.runs, 2);
	CHECK_INT(rows.v[0].use.output_bytes, 22);
	store_usage_rows_fini(&rows);
}
