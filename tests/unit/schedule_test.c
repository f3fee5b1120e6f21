/* schedule_test.c - ticks of schedules: a real store, a clock and runs that the test plays. */
#include "schedule/schedule.h"
#include "schedule/civil.h"
#include "schedule/zone.h"
#include "store/sql.h"
#include "store_dir.h"

#include <unistd.h>

#define NS_S INT64_C(1000000000)

/* ---- the world outside of the server: it survives a kill ---- */

struct played_run {
	struct played_run *next;
	char schedule[ID_MAX + 1];
	int64_t at_ns, end_ns;
	uint32_t attempt;
	int fails, stopped;
};
enum { BUCKETS = 65536 };
static struct world {
	int64_t now;
	struct played_run *runs[BUCKETS];
	unsigned nruns, stops;
	int64_t lasts_ns; /* each run */
	unsigned fails;   /* so many of the next runs */
	int denied;       /* the principal may not start anything */
	int kill;         /* 1: the server is killed before the next start, 2: after it */
	int killed;
	char events[4096]; /* "type at;" */
} world;

static struct played_run **world_bucket(const char *schedule, int64_t at_ns)
{
	uint64_t h = (uint64_t)at_ns / 1000000000 * 31;

	for (; *schedule; schedule++)
		h = (h ^ (unsigned char)*schedule) * 1099511628211u;
	return &world.runs[(h >> 20) % BUCKETS];
}

static struct played_run *world_find(const char *schedule, int64_t at_ns, uint32_t attempt)
{
	struct played_run *r = *world_bucket(schedule, at_ns);

	while (r &&
	       (strcmp(r->schedule, schedule) != 0 || r->at_ns != at_ns || r->attempt != attempt))
		r = r->next;
	return r;
}

static int64_t world_now(void *ctx)
{
	(void)ctx;
	return world.now;
}

static void world_start(void *ctx, const struct store_schedule *s, const struct store_tick *t)
{
	struct played_run *r = calloc(1, sizeof(*r)), **at = world_bucket(s->id, t->at_ns);

	(void)ctx;
	if (world.kill == 1 || world.killed) {
		world.killed = 1;
		free(r);
		return;
	}
	memcpy(r->schedule, s->id, sizeof(r->schedule));
	r->at_ns = t->at_ns;
	r->attempt = t->attempt;
	r->end_ns = world.now + world.lasts_ns;
	world.nruns++;
	if (world.fails) {
		world.fails--;
		r->fails = 1;
	}
	r->next = *at;
	*at = r;
	world.killed |= world.kill == 2;
}

static enum schedule_found world_result(void *ctx, const struct store_schedule *s,
					const struct store_tick *t, char out_why[STORE_REASON + 1])
{
	const struct played_run *r = world_find(s->id, t->at_ns, t->attempt);

	(void)ctx;
	if (!r)
		return FOUND_NOTHING;
	if (r->stopped || (r->fails && world.now >= r->end_ns)) {
		snprintf(out_why, STORE_REASON + 1, "exit status 1");
		return FOUND_FAILED;
	}
	return world.now < r->end_ns ? FOUND_RUNNING : FOUND_SUCCEEDED;
}

static void world_stop(void *ctx, const struct store_schedule *s, const struct store_tick *t)
{
	struct played_run *r = world_find(s->id, t->at_ns, t->attempt);

	(void)ctx;
	world.stops++;
	if (r)
		r->stopped = 1;
}

static int world_may(void *ctx, const struct store_schedule *s, struct err *e)
{
	(void)ctx;
	(void)s;
	return world.denied ? (err_set(e, ERR_DENIED, "key %s was revoked", s->key), 0) : 1;
}

static void world_emit(void *ctx, const char *type, const struct store_schedule *s,
		       const struct store_tick *t)
{
	size_t n = strlen(world.events);

	(void)ctx;
	(void)s;
	(void)t;
	snprintf(world.events + n, sizeof(world.events) - n, "%s ", type + strlen("schedule."));
}

static const struct schedule_runner world_runner = { .now_ns = world_now,
						     .start = world_start,
						     .find = world_result,
						     .stop = world_stop,
						     .may = world_may,
						     .emit = world_emit };

static void world_begin(int64_t now)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		while (world.runs[i]) {
			struct played_run *r = world.runs[i];

			world.runs[i] = r->next;
			free(r);
		}
	memset(&world, 0, sizeof(world));
	world.now = now;
}

static int64_t at_utc(int year, unsigned month, unsigned day, unsigned hour, unsigned minute)
{
	return NS_S * civil_seconds(&(struct civil){ year, month, day, hour, minute, 0, 0 });
}

static struct store_schedule schedule_of(unsigned n, const char *expression, const char *zone,
					 const char *settings)
{
	struct store_schedule x = { .team = "default",
				    .who = "uid:0",
				    .key = "keykeykeyk",
				    .role = ROLE_OWNER,
				    .created_ns = world.now,
				    .anchor_ns = world.now,
				    .decided_ns = world.now,
				    .request = (char *)"{}",
				    .settings = (char *)settings };

	snprintf(x.id, sizeof(x.id), "%s", id_of(n));
	snprintf(x.name, sizeof(x.name), "schedule-%u", n);
	snprintf(x.expression, sizeof(x.expression), "%s", expression);
	snprintf(x.zone, sizeof(x.zone), "%s", zone);
	return x;
}

/* Lets time pass: to the next time that matters, until `until`. */
static void world_pass(struct schedules *a, int64_t until)
{
	while (world.now < until) {
		int64_t next = schedules_wake_ns(a), step = world.now + NS_S;

		/* What was started ends by itself: looked at once a second, as the timer does. */
		next = world.lasts_ns && step < next ? step : next;
		world.now = next < until ? (next > world.now ? next : world.now) : until;
		schedules_advance(a);
		schedules_look(a, NULL);
	}
}

static void schedules_done(struct schedules **a)
{
	schedules_free(*a);
}
#define auto_schedules __attribute__((cleanup(schedules_done)))

#define ENGINE(a, s)                                                                               \
	auto_schedules struct schedules *a = schedules_new(NULL, s, &world_runner);                \
	CHECK_OK(schedules_begin(a, &err))

/* The states of all ticks, oldest first: "succeeded skipped". */
static const char *history(struct store *s, unsigned n)
{
	static char text[4096];
	struct store_ticks l;

	text[0] = 0;
	if (store_tick_list(s, id_of(n), 0, 100, &l, &err) < 0)
		return err.msg;
	for (unsigned i = l.n; i-- > 0;) {
		size_t at = strlen(text);

		snprintf(text + at, sizeof(text) - at, "%s%s", at ? " " : "",
			 store_tick_state_name(l.v[i].state));
		if (l.v[i].count)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "(%llu)",
				 (unsigned long long)l.v[i].count);
	}
	store_ticks_fini(&l);
	return text;
}

/* ---- a year ---- */

enum { YEAR_SCHEDULES = 1000 };
static const char *const year_zones[] = {
	"UTC",          "Europe/Berlin",    "America/New_York", "Australia/Lord_Howe",
	"Asia/Kolkata", "America/Santiago", "Pacific/Auckland"
};
/* Rare ones, and all around the hours at which clocks change. */
static const char *const year_texts[] = {
	"30 2 20-31 mar,oct *",      "0 6 * 1-6 mon",   "15 1 1,15 * *", "0 3 1 * *",
	"45 2 * 3,4,10 sun",         "0 0 31 * *",      "0 12 13 1-4 5", "30 1 * 3,9-11 sat-sun",
	"0,30 2 29,30,25 mar,oct *", "59 23 28-31 2 *", "0 0 1 1 *",     "30 */2 25,29 3,10 *",
};

static unsigned random_state = 7;
static unsigned random_number(unsigned below)
{
	random_state = random_state * 1103515245u + 12345u;
	return (random_state >> 8) % below;
}

/* How often this tick was run to its end or at all, over all attempts. */
static unsigned year_runs(const char *schedule, int64_t at_ns)
{
	unsigned n = 0;

	for (const struct played_run *r = *world_bucket(schedule, at_ns); r; r = r->next)
		n += !strcmp(r->schedule, schedule) && r->at_ns == at_ns;
	return n;
}

TEST(a_thousand_schedules_run_each_tick_of_a_year_once_across_restarts)
{
	const int64_t begin = at_utc(2026, 1, 1, 0, 0), end = at_utc(2027, 1, 1, 0, 0);
	char in[] = "/tmp/atoll-schedule-XXXXXX", command[300];
	unsigned restarts = 0, kills[3] = { 0 }, n, expected = 0;
	struct schedules *a;
	long long want;
	FILE *f;

	if (access(ZONE_FOLDER "/Europe/Berlin", R_OK) < 0)
		SKIP("this machine has no time zone database (tzdata)");
	if (system("python3 -c 'import zoneinfo' 2>/dev/null") != 0)
		SKIP("this machine has no Python with zoneinfo");
	world_begin(begin);
	STORE(s, dir);
	f = fdopen(mkstemp(in), "w");
	CHECK(f != NULL);
	CHECK_OK(store_begin(s, &err));
	for (unsigned i = 0; i < YEAR_SCHEDULES; i++) {
		const char *zone = year_zones[i % ARRAY_LEN(year_zones)],
			   *text = year_texts[i / 7 % ARRAY_LEN(year_texts)];
		struct store_schedule x =
			schedule_of(i, text, zone, "{\"overlap\":\"queue\",\"catch_up\":\"all\"}");

		CHECK_OK(store_schedule_add(s, &x, &err));
		fprintf(f, "%u|%lld|%lld|%s|%s\n", i, (long long)(begin / NS_S),
			(long long)(end / NS_S), zone, text);
	}
	CHECK_OK(store_commit(s, &err));
	fclose(f);

	a = schedules_new(NULL, s, &world_runner);
	CHECK_OK(schedules_begin(a, &err));
	/* One transaction for many ticks, ended before each restart: the test is faster, and all that
	 * a server had committed is there after it was killed. */
	CHECK_OK(store_begin(s, &err));
	while (world.now < end) {
		int64_t next = schedules_wake_ns(a);

		world.now = next < end ? next : end;
		if (!random_number(10))
			world.kill = (int)random_number(3);
		else if (!world.kill && random_number(100) == 0)
			world.killed = 1;
		schedules_advance(a);
		if (!world.killed) {
			schedules_look(a, NULL);
			continue;
		}
		kills[world.kill]++;
		world.kill = world.killed = 0;
		schedules_free(a);
		CHECK_OK(store_commit(s, &err));
		if (random_number(4) == 0) {
			store_close(s);
			s = NULL;
			CHECK_OK(store_open(&s, dir, &err));
		}
		restarts++;
		a = schedules_new(NULL, s, &world_runner);
		CHECK_OK(store_begin(s, &err));
		CHECK_OK(schedules_begin(a, &err));
	}
	schedules_free(a);
	CHECK_OK(store_commit(s, &err));

	snprintf(command, sizeof(command), "python3 " TESTS "/schedule/table.py < %s", in);
	f = popen(command, "re");
	while (fscanf(f, "%u %lld", &n, &want) == 2) {
		if (year_runs(id_of(n), want * NS_S) != 1)
			printf("# schedule %u (%s): %u runs at %lld\n", n,
			       year_texts[n / 7 % ARRAY_LEN(year_texts)],
			       year_runs(id_of(n), want * NS_S), want);
		CHECK_INT(year_runs(id_of(n), want * NS_S), 1);
		expected++;
	}
	CHECK_INT(pclose(f), 0);
	unlink(in);
	printf("# %u ticks, %u restarts, killed before the start %u, after it %u\n", expected,
	       restarts, kills[1], kills[2]);
	CHECK_INT(world.nruns, expected); /* and no other ones */
	CHECK(expected > 10000);
	CHECK(kills[1] > 20 && kills[2] > 20);
}

/* ---- the clock ---- */

TEST(a_clock_that_is_set_back_runs_no_tick_again)
{
	world_begin(at_utc(2026, 5, 1, 10, 30));
	STORE(s, dir);
	struct store_schedule x = schedule_of(1, "0 * * * *", "UTC", "{}");

	CHECK_OK(store_schedule_add(s, &x, &err));
	ENGINE(a, s);
	world_pass(a, at_utc(2026, 5, 1, 14, 30));
	CHECK_INT(world.nruns, 4);
	world.now = at_utc(2026, 5, 1, 11, 30); /* set back by three hours */
	schedules_advance(a);
	world_pass(a, at_utc(2026, 5, 1, 14, 45));
	CHECK_INT(world.nruns, 4);
	world_pass(a, at_utc(2026, 5, 1, 15, 30));
	CHECK_INT(world.nruns, 5);
	world.now = at_utc(2025, 5, 1, 10, 30); /* a year */
	schedules_advance(a);
	schedules_free(a);
	a = schedules_new(NULL, s, &world_runner); /* and a restart */
	CHECK_OK(schedules_begin(a, &err));
	world_pass(a, at_utc(2025, 5, 1, 12, 30));
	CHECK_INT(world.nruns, 7); /* ticks of another year: 11:00, 12:00 */
}

TEST(a_clock_that_is_set_forward_misses_ticks)
{
	world_begin(at_utc(2026, 5, 1, 10, 30));
	STORE(s, dir);
	struct store_schedule none = schedule_of(1, "0 * * * *", "UTC", "{\"catch_up\":\"none\"}"),
			      one = schedule_of(2, "0 * * * *", "UTC", "{}"),
			      all = schedule_of(3, "0 * * * *", "UTC",
						"{\"catch_up\":\"all\",\"catch_up_max\":5}");

	CHECK_OK(store_schedule_add(s, &none, &err));
	CHECK_OK(store_schedule_add(s, &one, &err));
	CHECK_OK(store_schedule_add(s, &all, &err));
	ENGINE(a, s);
	world.now = at_utc(2026, 5, 2, 10, 30); /* 24 ticks later */
	schedules_advance(a);
	for (int i = 0; i < 6; i++)
		schedules_look(a, NULL);
	CHECK_STR(history(s, 1), "missed(24)");
	CHECK_STR(history(s, 2), "missed(23) succeeded");
	CHECK_STR(history(s, 3), "missed(19) succeeded succeeded succeeded succeeded succeeded");
	CHECK_INT(world.nruns, 6);
	CHECK(strstr(world.events, "missed") && strstr(world.events, "late"));
	world_pass(a, at_utc(2026, 5, 2, 11, 30));
	CHECK_INT(world.nruns, 9);
}

TEST(a_year_without_a_server_is_caught_up_at_once)
{
	world_begin(at_utc(2026, 5, 1, 10, 30));
	STORE(s, dir);
	struct store_schedule minutes = schedule_of(1, "* 0-23 * * *", "UTC", "{}"),
			      seconds = schedule_of(2, "every 1s", "UTC", "{}");

	CHECK_OK(store_schedule_add(s, &minutes, &err));
	CHECK_OK(store_schedule_add(s, &seconds, &err));
	world.now = at_utc(2027, 5, 1, 10, 30) + 1;
	ENGINE(a, s);
	schedules_look(a, NULL);
	CHECK(strstr(history(s, 1), "missed(") && strstr(history(s, 1), "succeeded"));
	CHECK(strstr(history(s, 2), "missed("));
}

/* ---- policies ---- */

TEST(a_tick_during_the_run_before_it_is_skipped_queued_or_replaces_it)
{
	world_begin(at_utc(2026, 5, 1, 10, 0));
	STORE(s, dir);
	struct store_schedule skip = schedule_of(1, "every 60s", "UTC", "{}"),
			      queue = schedule_of(2, "every 60s", "UTC", "{\"overlap\":\"queue\"}"),
			      replace = schedule_of(3, "every 60s", "UTC",
						    "{\"overlap\":\"replace\"}");

	CHECK_OK(store_schedule_add(s, &skip, &err));
	CHECK_OK(store_schedule_add(s, &queue, &err));
	CHECK_OK(store_schedule_add(s, &replace, &err));
	world.lasts_ns = 90 * NS_S;
	ENGINE(a, s);
	world_pass(a, at_utc(2026, 5, 1, 10, 4) + 5 * NS_S);
	CHECK_STR(history(s, 1), "succeeded skipped running skipped");
	CHECK_STR(history(s, 2), "succeeded succeeded running waiting");
	CHECK_STR(history(s, 3), "replaced replaced replaced running");
}

TEST(a_failed_tick_is_tried_again)
{
	world_begin(at_utc(2026, 5, 1, 10, 0));
	STORE(s, dir);
	struct store_schedule x =
		schedule_of(1, "@hourly", "UTC", "{\"retries\":2,\"retry_ms\":1000}");
	struct store_tick t;

	CHECK_OK(store_schedule_add(s, &x, &err));
	ENGINE(a, s);
	world.fails = 2;
	world_pass(a, at_utc(2026, 5, 1, 11, 0));
	CHECK_STR(history(s, 1), "waiting");
	schedules_free(a); /* a restart forgets no attempt */
	a = schedules_new(NULL, s, &world_runner);
	CHECK_OK(schedules_begin(a, &err));
	world_pass(a, at_utc(2026, 5, 1, 11, 1));
	CHECK_STR(history(s, 1), "succeeded");
	CHECK_OK(store_tick_get(s, id_of(1), at_utc(2026, 5, 1, 11, 0), &t, &err));
	CHECK_INT(t.attempt, 3);
	CHECK_INT(t.ended_ns, at_utc(2026, 5, 1, 11, 0) + 3 * NS_S); /* pauses of 1 s and 2 s */
	world.fails = 3;
	world_pass(a, at_utc(2026, 5, 1, 12, 1));
	CHECK_STR(history(s, 1), "succeeded failed");
	CHECK_INT(world.nruns, 6);
}

TEST(a_tick_that_exceeds_the_time_limit_is_stopped)
{
	world_begin(at_utc(2026, 5, 1, 10, 0));
	STORE(s, dir);
	struct store_schedule x = schedule_of(1, "@hourly", "UTC", "{\"timeout_ms\":5000}");
	struct store_tick t;

	CHECK_OK(store_schedule_add(s, &x, &err));
	world.lasts_ns = 100 * NS_S;
	ENGINE(a, s);
	world_pass(a, at_utc(2026, 5, 1, 11, 1));
	CHECK_OK(store_tick_get(s, id_of(1), at_utc(2026, 5, 1, 11, 0), &t, &err));
	CHECK_STR(store_tick_state_name(t.state), "failed");
	CHECK_STR(t.detail, "the time limit of the schedule was reached");
	CHECK_INT(t.ended_ns, at_utc(2026, 5, 1, 11, 0) + 5 * NS_S);
}

TEST(a_refused_request_is_a_failed_tick)
{
	world_begin(at_utc(2026, 5, 1, 10, 0));
	STORE(s, dir);
	struct store_schedule x = schedule_of(1, "@hourly", "UTC", "{}");
	struct store_tick t;

	CHECK_OK(store_schedule_add(s, &x, &err));
	world.lasts_ns = 100 * NS_S;
	ENGINE(a, s);
	world.now = at_utc(2026, 5, 1, 11, 0);
	schedules_advance(a);
	CHECK_OK(store_tick_get(s, id_of(1), world.now, &t, &err));
	t.attempt = 7;
	schedules_refused(a, &t, "", "of another attempt");
	CHECK_STR(history(s, 1), "starting");
	t.attempt = 1;
	schedules_refused(a, &t, "", "too many executions today");
	CHECK_OK(store_tick_get(s, id_of(1), world.now, &t, &err));
	CHECK_STR(store_tick_state_name(t.state), "failed");
	CHECK_STR(t.detail, "too many executions today");
}

TEST(a_revoked_key_pauses_the_schedule)
{
	world_begin(at_utc(2026, 5, 1, 10, 0));
	STORE(s, dir);
	struct store_schedule x = schedule_of(1, "@hourly", "UTC", "{}"), got;

	CHECK_OK(store_schedule_add(s, &x, &err));
	ENGINE(a, s);
	world.denied = 1;
	world_pass(a, at_utc(2026, 5, 1, 12, 30));
	CHECK_OK(store_schedule_by_id(s, id_of(1), &got, &err));
	CHECK_STR(store_schedule_state_name(got.state), "paused");
	CHECK_STR(got.reason, "key keykeykeyk was revoked");
	store_schedule_fini(&got);
	CHECK_STR(history(s, 1), "failed");
	CHECK_INT(world.nruns, 0);
	CHECK_INT(schedules_wake_ns(a), INT64_MAX);
}

TEST(a_schedule_without_more_times_has_ended)
{
	world_begin(at_utc(2026, 5, 1, 10, 0));
	STORE(s, dir);
	struct store_schedule x = schedule_of(1, "at 2026-05-01T12:00", "UTC", "{}"), got;

	CHECK_OK(store_schedule_add(s, &x, &err));
	ENGINE(a, s);
	world_pass(a, at_utc(2026, 5, 1, 13, 0));
	CHECK_OK(store_schedule_by_id(s, id_of(1), &got, &err));
	CHECK_STR(store_schedule_state_name(got.state), "ended");
	store_schedule_fini(&got);
	CHECK_STR(history(s, 1), "succeeded");
}

TEST(a_tick_can_be_added_by_a_request_also_of_a_paused_schedule)
{
	world_begin(at_utc(2026, 5, 1, 10, 0));
	STORE(s, dir);
	struct store_schedule x = schedule_of(1, "@hourly", "UTC", "{}");
	struct store_tick t;

	x.state = SCHEDULE_PAUSED;
	CHECK_OK(store_schedule_add(s, &x, &err));
	world.lasts_ns = NS_S;
	ENGINE(a, s);
	CHECK_OK(schedules_run_now(a, id_of(1), &t, &err));
	CHECK_INT(world.nruns, 1);
	CHECK_ERR(schedules_run_now(a, id_of(1), &t, &err), ERR_CONFLICT);
	world_pass(a, at_utc(2026, 5, 1, 12, 30));
	CHECK_STR(history(s, 1), "succeeded");
	CHECK_ERR(schedules_run_now(a, id_of(2), &t, &err), ERR_CONFLICT);
}

TEST(a_changed_schedule_is_read_again)
{
	world_begin(at_utc(2026, 5, 1, 10, 0));
	STORE(s, dir);
	struct store_schedule x = schedule_of(1, "@hourly", "UTC", "{}");

	ENGINE(a, s);
	CHECK_OK(store_schedule_add(s, &x, &err));
	CHECK_OK(schedules_changed(a, x.id, &err));
	CHECK_INT(schedules_next_ns(a, x.id), at_utc(2026, 5, 1, 11, 0));
	snprintf(x.expression, sizeof(x.expression), "30 * * * *");
	CHECK_OK(store_schedule_put(s, &x, &err));
	CHECK_OK(schedules_changed(a, x.id, &err));
	CHECK_INT(schedules_next_ns(a, x.id), at_utc(2026, 5, 1, 10, 30));
	CHECK_OK(store_schedule_remove(s, x.id, &err));
	CHECK_OK(schedules_changed(a, x.id, &err));
	CHECK_INT(schedules_wake_ns(a), INT64_MAX);
}

TEST(the_jitter_of_a_tick_is_always_the_same)
{
	struct schedule_settings x = { .jitter_ms = 60000 };
	uint32_t least = UINT32_MAX, most = 0;

	for (unsigned i = 0; i < 1000; i++) {
		uint32_t ms = schedule_jitter_ms(&x, "abcdefghijkl", i * 3600 * NS_S);

		CHECK_INT(ms, schedule_jitter_ms(&x, "abcdefghijkl", i * 3600 * NS_S));
		CHECK(ms <= 60000);
		least = ms < least ? ms : least;
		most = ms > most ? ms : most;
	}
	CHECK(least < 2000 && most > 58000);
}

TEST(history_is_trimmed_and_trimmed_ticks_are_not_run_again)
{
	world_begin(at_utc(2026, 5, 1, 10, 0));
	STORE(s, dir);
	struct store_schedule x = schedule_of(1, "every 1s", "UTC", "{\"overlap\":\"queue\"}");
	struct store_ticks l;

	CHECK_OK(store_schedule_add(s, &x, &err));
	ENGINE(a, s);
	CHECK_OK(store_begin(s, &err));
	world_pass(a, world.now + 1200 * NS_S);
	CHECK_OK(store_commit(s, &err));
	CHECK_INT(world.nruns, 1200);
	CHECK_OK(store_tick_list(s, id_of(1), 0, 1000, &l, &err));
	CHECK_INT(l.n, 1000);
	store_ticks_fini(&l);
	schedules_free(a);
	world.now -= 1200 * NS_S; /* set back to the start */
	a = schedules_new(NULL, s, &world_runner);
	CHECK_OK(schedules_begin(a, &err));
	CHECK_OK(store_begin(s, &err));
	world_pass(a, world.now + 1201 * NS_S);
	CHECK_OK(store_commit(s, &err));
	CHECK_INT(world.nruns, 1201);
}

/* As on a full disk: every write fails. */
static void store_refuses(struct store *s, int refuses)
{
	sqlite3_exec(s->db, refuses ? "PRAGMA query_only = 1" : "PRAGMA query_only = 0", NULL, NULL,
		     NULL);
}

TEST(a_store_that_fails_delays_a_tick_and_does_not_repeat_it)
{
	const int64_t due = at_utc(2026, 5, 1, 11, 0);

	world_begin(at_utc(2026, 5, 1, 10, 0));
	STORE(s, dir);
	struct store_schedule x = schedule_of(1, "@hourly", "UTC", "{}");

	CHECK_OK(store_schedule_add(s, &x, &err));
	world.lasts_ns = 10 * NS_S;
	ENGINE(a, s);
	store_refuses(s, 1);
	world_pass(a, due + 5 * NS_S);
	CHECK_INT(world.nruns, 0); /* nothing starts without a row */
	store_refuses(s, 0);
	world_pass(a, due + 7 * NS_S);
	CHECK_INT(world.nruns, 1);
	CHECK_STR(history(s, 1), "running");
	store_refuses(s, 1);
	world_pass(a, due + 20 * NS_S);
	CHECK_STR(history(s, 1), "running");
	store_refuses(s, 0);
	world_pass(a, due + 22 * NS_S);
	CHECK_STR(history(s, 1), "succeeded");
	CHECK_INT(world.nruns, 1);
}

TEST(settings_are_checked)
{
	struct schedule_settings x;
	json_t *bad[] = {
		json_pack("{s:s}", "overlap", "never"), json_pack("{s:i}", "retries", -1),
		json_pack("{s:i}", "retries", 21),      json_pack("{s:i}", "catch_up_max", 0),
		json_pack("{s:s}", "jitter_ms", "1m"),  json_pack("{s:i}", "retry_ms", 0)
	};

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		schedule_settings_default(&x);
		CHECK_ERR(schedule_settings_read(&x, bad[i], &err), ERR_INVALID);
		json_decref(bad[i]);
	}
}
