/* alert_test.c - when an alert is pending, fires and is resolved, and which rules are accepted. */
#include "alert/alerts.h"
#include "alert/state.h"
#include "base/cleanup.h"
#include "store/alerts.h"
#include "fake_fleet.h"
#include "store/sql.h"
#include "store_dir.h"
#include "v1box/suspects.h"
#include "v1box/usage_sampler.h"

#define SECOND INT64_C(1000000000)

static const struct alert_rule ratio = { .name = "r",
					 .threshold = 0.05,
					 .min_count = 20,
					 .for_s = 60,
					 .cooldown_s = 600,
					 .window_s = 300,
					 .enabled = 1 };

static struct alert_sample sample(double value, double count)
{
	return (struct alert_sample){ .known = 1, .value = value, .count = count };
}

static enum alert_change step(const struct alert_rule *r, struct alert_state *st, double value,
			      int64_t at_s)
{
	struct alert_sample s = sample(value, 100);

	return alert_step(r, st, &s, at_s * SECOND);
}

TEST(a_value_is_compared_with_threshold_and_minimum_count)
{
	struct alert_rule below = { .threshold = 0.1, .below = 1, .enabled = 1 };
	struct alert_sample s = sample(0.06, 20), none = { 0 };

	CHECK(alert_is_breached(&ratio, &s));
	s.count = 19; /* too few executions */
	CHECK(!alert_is_breached(&ratio, &s));
	s = sample(0.05, 20); /* not above it */
	CHECK(!alert_is_breached(&ratio, &s));
	s = sample(0.09, 1);
	CHECK(alert_is_breached(&below, &s));
	s = sample(0.1, 1);
	CHECK(!alert_is_breached(&below, &s));
	CHECK(!alert_is_breached(&below, &none)); /* no value is no problem */
}

TEST(an_alert_is_pending_then_fires_then_is_resolved)
{
	struct alert_state st = { 0 };

	CHECK_INT(step(&ratio, &st, 0.01, 1000), ALERT_SAME);
	CHECK_INT(step(&ratio, &st, 0.5, 1010), ALERT_BEGAN);
	CHECK_INT(step(&ratio, &st, 0.5, 1069), ALERT_SAME);
	CHECK_INT(step(&ratio, &st, 0.5, 1070), ALERT_FIRED);
	CHECK_INT(step(&ratio, &st, 0.5, 1080), ALERT_SAME);
	CHECK_INT(step(&ratio, &st, 0.01, 1090), ALERT_SAME);
	CHECK_INT(step(&ratio, &st, 0.01, 1149), ALERT_SAME);
	CHECK_INT(step(&ratio, &st, 0.01, 1150), ALERT_RESOLVED);
	CHECK_INT(st.phase, ALERT_OK);
}

TEST(a_short_problem_does_not_fire)
{
	struct alert_state st = { 0 };

	CHECK_INT(step(&ratio, &st, 0.5, 1000), ALERT_BEGAN);
	CHECK_INT(step(&ratio, &st, 0.01, 1030), ALERT_ENDED);
	CHECK_INT(step(&ratio, &st, 0.5, 1040), ALERT_BEGAN);
	CHECK_INT(step(&ratio, &st, 0.5, 1099), ALERT_SAME);
	CHECK_INT(step(&ratio, &st, 0.5, 1100), ALERT_FIRED);
}

TEST(a_rule_without_a_wait_fires_at_once)
{
	struct alert_rule r = ratio;
	struct alert_state st = { 0 };

	r.for_s = 0;
	CHECK_INT(step(&r, &st, 0.5, 1000), ALERT_FIRED);
	CHECK_INT(step(&r, &st, 0.01, 1001), ALERT_RESOLVED);
}

TEST(a_value_that_alternates_is_reported_once_in_the_cooldown)
{
	struct alert_rule r = ratio;
	struct alert_state st = { 0 };
	unsigned fired = 0;

	r.for_s = 0;
	for (int64_t t = 1000; t < 1000 + 3600; t += 10)
		fired += step(&r, &st, t / 10 % 2 ? 0.5 : 0.01, t) == ALERT_FIRED;
	CHECK_INT(fired, 6); /* an hour has six times 600 s */
	/* With a wait, a value that alternates faster is never good for long enough. */
	st = (struct alert_state){ 0 };
	r.for_s = 60;
	fired = 0;
	for (int64_t t = 1000; t < 1000 + 3600; t += 10)
		fired += step(&r, &st, t < 1100 || t / 10 % 2 ? 0.5 : 0.01, t) == ALERT_FIRED;
	CHECK_INT(fired, 1);
	CHECK_INT(st.phase, ALERT_FIRING);
}

TEST(a_disabled_rule_resolves_its_alert)
{
	struct alert_rule r = ratio;
	struct alert_state st = { 0 };

	r.for_s = 0;
	CHECK_INT(step(&r, &st, 0.5, 1000), ALERT_FIRED);
	r.enabled = 0;
	CHECK_INT(step(&r, &st, 0.5, 1001), ALERT_RESOLVED);
	CHECK_INT(step(&r, &st, 0.5, 2000), ALERT_SAME);
}

TEST(a_clock_that_is_set_back_extends_no_wait)
{
	struct alert_state st = { 0 };

	CHECK_INT(step(&ratio, &st, 0.5, 100000), ALERT_BEGAN);
	CHECK_INT(step(&ratio, &st, 0.5, 1000), ALERT_FIRED);
	CHECK_INT(step(&ratio, &st, 0.01, 1010), ALERT_SAME);
	CHECK_INT(step(&ratio, &st, 0.01, 10), ALERT_RESOLVED);
}

/* ---- rules ---- */

static int reads(const char *text)
{
	struct alert_rule r = { .name = "x", .window_s = 60 };
	json_t *doc = json_loads(text, 0, NULL);
	struct err e;
	int rc = alert_rule_read(&r, doc, &e);

	json_decref(doc);
	return rc == 0;
}

TEST(shipped_rules_are_valid_and_have_the_values_of_the_requirements)
{
	for (unsigned i = 0; i < alert_nshipped; i++) {
		struct alert_rule r = alert_shipped[i], again = { .window_s = 1 };
		json_t *doc = alert_rule_json(&r);

		CHECK(r.enabled && r.shipped);
		again.shipped = 1;
		snprintf(again.name, sizeof(again.name), "%s", r.name);
		if (!r.window_s)
			json_object_del(doc, "window_s");
		CHECK_OK(alert_rule_read(&again, doc, &err));
		CHECK_STR(again.figure, r.figure);
		CHECK(again.threshold == r.threshold && again.below == r.below);
		json_decref(doc);
	}
	CHECK_STR(alert_shipped[0].name, "failures");
	CHECK(alert_shipped[0].threshold == 0.05);
	CHECK(alert_shipped[1].threshold == 10 && alert_shipped[2].threshold == 100);
}

TEST(bad_rules_are_refused)
{
	static const char *const bad[] = {
		"{}",
		"{\"figure\":\"no_such_figure\"}",
		"{\"figure\":\"boxes\",\"aggregate\":\"increase\"}",
		"{\"figure\":\"cost_total\",\"aggregate\":\"mean\"}",
		"{\"figure\":\"run_seconds\",\"aggregate\":\"last\"}",
		"{\"figure\":\"boxes\",\"aggregate\":\"median\"}",
		"{\"figure\":\"boxes\",\"aggregate\":\"last\",\"when\":\"near\"}",
		"{\"figure\":\"boxes\",\"aggregate\":\"last\",\"threshold\":\"many\"}",
		"{\"figure\":\"boxes\",\"aggregate\":\"last\",\"threshold\":1e30}",
		"{\"figure\":\"boxes\",\"aggregate\":\"last\",\"labels\":\"a=b\"}",
		"{\"figure\":\"executions_total\",\"labels\":\"outcome=ok\\nx=y\"}",
		"{\"figure\":\"boxes\",\"aggregate\":\"last\",\"summary\":\"a\\r\\nBcc: b\"}",
		"{\"figure\":\"boxes\",\"aggregate\":\"last\",\"window_s\":0}",
		"{\"figure\":\"boxes\",\"aggregate\":\"last\",\"for_s\":-1}",
		"{\"figure\":\"boxes\",\"aggregate\":\"last\",\"per\":\"nothing\"}",
	};

	CHECK(reads("{\"figure\":\"boxes\",\"aggregate\":\"last\",\"threshold\":2}"));
	CHECK(reads("{\"figure\":\"executions_total\",\"labels\":\"outcome!=ok\"}"));
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		if (reads(bad[i]))
			printf("# %s\n", bad[i]);
		CHECK(!reads(bad[i]));
	}
	CHECK(alert_rule_check_name("a rule", &err) < 0);
	CHECK(alert_rule_check_name("", &err) < 0);
	CHECK(alert_rule_check_name("a.rule_1-x", &err) == 0);
}

/* ---- rows ---- */

TEST(alerts_keep_their_states_and_times)
{
	struct store_alert a = { .rule = "r",
				 .state = "pending",
				 .value = 0.125,
				 .threshold = 0.05,
				 .summary = "s",
				 .pending_ns = 5 },
			   b;
	struct store_alerts rows = { 0 };

	STORE(s, dir);
	CHECK_OK(store_alert_put(s, &a, &err));
	CHECK(a.id > 0);
	snprintf(a.state, sizeof(a.state), "firing");
	a.fired_ns = 6;
	CHECK_OK(store_alert_put(s, &a, &err));
	CHECK_OK(store_alert_last(s, "r", &b, &err));
	CHECK(b.id == a.id && b.value == 0.125 && b.fired_ns == 6 && b.pending_ns == 5);
	CHECK_OK(store_alert_list(s, 1, 0, 0, &rows, &err));
	CHECK_INT(rows.n, 1);
	store_alerts_fini(&rows);
	snprintf(a.state, sizeof(a.state), "resolved");
	CHECK_OK(store_alert_put(s, &a, &err));
	CHECK_OK(store_alert_list(s, 1, 0, 0, &rows, &err));
	CHECK_INT(rows.n, 0);
	store_alerts_fini(&rows);
	CHECK(store_alert_last(s, "other", &b, &err) < 0 && err.kind == ERR_NOT_FOUND);
}

/* ---- miners ---- */

TEST(a_box_is_suspect_after_ten_minutes_of_full_cpu)
{
	struct suspect_span x = { 0 };
	struct usage_sample s = { .at_s = 1000, .cpu_us = 7000000 };

	for (unsigned i = 0; i <= 60; i++) {
		suspect_add(&x, &s);
		if (i == 40)
			CHECK(!suspect_is_pinned(&x, 1000)); /* 400 s */
		s.at_s += 10;
		s.cpu_us += 9500000; /* 95 % of one processor */
	}
	CHECK(suspect_is_pinned(&x, 1000));
	CHECK(!suspect_is_pinned(&x, 2000)); /* less than half of two */
	CHECK(suspect_is_pinned(&x, 500));
}

/* ---- a store that refuses writes ---- */

static void read_boxes(struct metrics_source *s, struct metrics *m)
{
	(void)s;
	metrics_put(m, METRIC_BOXES, 1, NULL, NULL);
}

static struct metrics_source boxes = { .read = read_boxes };
static int wanted; /* a process for the command */

static void need_command(void *ctx)
{
	(void)ctx;
	wanted++;
}

/* The database may be what the alert is about: its notice needs none. */
TEST(an_alert_that_cannot_be_stored_is_sent)
{
	struct alerts_conf conf = { .interval_ms = 5,
				    .command = "/bin/true",
				    .need_command = need_command };
	json_t *rule = json_pack("{s:s, s:s, s:f}", "figure", "boxes", "aggregate", "last",
				 "threshold", -1.0);
	struct metrics *m;
	struct alerts *x;
	char said[1000] = "";
	int pair[2];

	CHECK_INT(fake_begin(NULL, NULL), 0);
	CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	m = metrics_new(fake.fleet);
	metrics_add_source(m, &boxes);
	x = alerts_new(fake.fleet, m, NULL, &conf);
	alerts_start(x);
	CHECK_OK(alerts_set_rule(x, "some", rule, &err));
	sqlite3_exec(fake.store->db, "PRAGMA query_only = 1", NULL, NULL, NULL);
	wanted = 0;
	CHECK(FAKE_UNTIL(wanted));
	alerts_command_connect(x, pair[0]);
	CHECK(recv(pair[1], said, sizeof(said) - 1, 0) > 0);
	CHECK(strstr(said, "\"rule\":\"some\",\"state\":\"firing\"") != NULL);
	CHECK(strstr(said, "\"alert\":0") != NULL);
	sqlite3_exec(fake.store->db, "PRAGMA query_only = 0", NULL, NULL, NULL);
	close(pair[1]);
	alerts_free(x);
	metrics_free(m);
	json_decref(rule);
	fake_end();
}
