/* cron_test.c - expressions of schedules, their times and time zones. */
#include "schedule/cron.h"
#include "base/cleanup.h"
#include "schedule/civil.h"
#include "schedule/zone.h"
#include "schedule/zone_rule.h"
#include "tap.h"

#include <stdlib.h>
#include <unistd.h>

static struct err err;

/* ---- expressions ---- */

static const char *refusal(const char *text)
{
	struct cron c;

	return cron_parse(&c, text, &err) < 0 ? err.msg : "accepted";
}

#define CHECK_REFUSED(text, part)                                                                  \
	do {                                                                                       \
		const char *why_ = refusal(text);                                                  \
		if (!strstr(why_, part)) {                                                         \
			printf("# %s:%d: '%s': %s\n", __FILE__, __LINE__, text, why_);             \
			tap_now = TAP_NOT_OK;                                                      \
			return;                                                                    \
		}                                                                                  \
	} while (0)

TEST(bad_expressions_are_refused_with_a_position_and_a_way_out)
{
	CHECK_REFUSED("* * 31 2 *", "never occurs");
	CHECK_REFUSED("0 0 30,31 feb *", "never occurs");
	CHECK_REFUSED("*/0 * * * *", "character 3 (minute): a step must be a number of at least 1");
	CHECK_REFUSED("*/90 * * * *", "every 90m");
	CHECK_REFUSED("60 * * * *", "character 1 (minute): out of range: '60'; type 0 to 59");
	CHECK_REFUSED("0 24 * * *", "character 3 (hour)");
	CHECK_REFUSED("0 0 0 * *", "day of the month");
	CHECK_REFUSED("0 0 * 13 *", "type 1 to 12, or a name such as feb");
	CHECK_REFUSED("0 0 * janu *", "there is no such name: 'janu'");
	CHECK_REFUSED("0 0 * * 8", "day of the week");
	CHECK_REFUSED("0 0 * * mo", "there is no such name");
	CHECK_REFUSED("mon 0 * * *", "type a cron expression");
	CHECK_REFUSED("0 mon * * *", "this field has no names");
	CHECK_REFUSED("0 22-4 * * *", "type two ranges");
	CHECK_REFUSED("5/15 * * * *", "type 5-59/15");
	CHECK_REFUSED("0 0 * *", "type five fields");
	CHECK_REFUSED("0 0 * * * *", "more than five fields");
	CHECK_REFUSED("0,,5 * * * *", "a value is missing");
	CHECK_REFUSED("0 0 * * 1-", "a value is missing");
	CHECK_REFUSED("0x * * * *", "this cannot follow");
	CHECK_REFUSED("99999999999999999999 * * * *", "out of range");
	CHECK_REFUSED("@reboot", "type @hourly");
	CHECK_REFUSED("every", "type a cron expression");
	CHECK_REFUSED("every 0s", "every");
	CHECK_REFUSED("every 100ms", "whole seconds");
	CHECK_REFUSED("at yesterday", "for example at 2026-12-01T06:00");
	CHECK_REFUSED("at 2026-02-30T06:00", "there is no such date");
	CHECK_REFUSED("at 2026-12-01T24:00", "there is no such date");
	CHECK_REFUSED("at 2026-12-01T06:00x", "type date and time");
	CHECK_REFUSED("", "type a cron expression");
}

TEST(names_are_accepted_in_any_case)
{
	struct cron c;

	CHECK(cron_parse(&c, "0 6 * JAN,Mar-may Mon-FRI", &err) == 0);
	CHECK_INT(c.months, 1 << 1 | 1 << 3 | 1 << 4 | 1 << 5);
	CHECK_INT(c.weekdays, 0x3e);
	CHECK(cron_parse(&c, "0 6 * * sat-sun", &err) == 0);
	CHECK_INT(c.weekdays, 1 << 6 | 1);
	CHECK(cron_parse(&c, "0 6 * * 5-7", &err) == 0);
	CHECK_INT(c.weekdays, 1 << 5 | 1 << 6 | 1);
	CHECK(cron_parse(&c, "  @Daily", &err) == 0);
	CHECK(cron_parse(&c, "EVERY 90m", &err) == 0);
	CHECK_INT(c.every_s, 5400);
}

static const char *words(const char *text)
{
	static char out[CRON_WORDS];
	struct cron c;

	if (cron_parse(&c, text, &err) < 0)
		return err.msg;
	cron_words(&c, out);
	return out;
}

TEST(plain_words_describe_an_expression)
{
	CHECK_STR(words("0 6 * * 1-5"), "at 06:00 on Monday to Friday");
	CHECK_STR(words("@daily"), "at 00:00 every day");
	CHECK_STR(words("*/15 * * * *"), "every 15 minutes every day");
	CHECK_STR(words("@hourly"), "on the hour of every hour every day");
	CHECK_STR(words("30 4 1,15 * 5"), "at 04:30 on day 1, 15 of the month or on Friday");
	CHECK_STR(words("0 0 1 1 *"), "at 00:00 on day 1 of the month in January");
	CHECK_STR(words("every 15m"), "every 15 min");
	CHECK_STR(words("at 2026-12-01T06:00"), "once, on Tuesday 2026-12-01 at 06:00");
}

/* ---- times ---- */

static int64_t at_utc(int year, unsigned month, unsigned day, unsigned hour, unsigned minute)
{
	return civil_seconds(&(struct civil){ year, month, day, hour, minute, 0, 0 });
}

static int64_t next_of(const char *text, const char *zone, int64_t after)
{
	struct zone *z = NULL;
	struct cron c;
	int64_t out = -1;

	if (cron_parse(&c, text, &err) == 0 && zone_load(&z, zone, &err) == 0 &&
	    !cron_next(&c, z, 0, after, &out))
		out = 0;
	zone_free(z);
	return out;
}

TEST(fixed_distances_count_from_the_start_of_the_schedule)
{
	struct zone *z;
	struct cron c;
	int64_t out;

	CHECK(zone_load(&z, "UTC", &err) == 0);
	CHECK(cron_parse(&c, "every 7m", &err) == 0);
	CHECK(cron_next(&c, z, 1000, 1000, &out) && out == 1420);
	CHECK(cron_next(&c, z, 1000, 1419, &out) && out == 1420);
	CHECK(cron_next(&c, z, 1000, 1420, &out) && out == 1840);
	CHECK(cron_next(&c, z, 1000, 5, &out) && out == 1420);
	CHECK(cron_parse(&c, "once", &err) == 0);
	CHECK(cron_next(&c, z, 1000, 999, &out) && out == 1000);
	CHECK(!cron_next(&c, z, 1000, 1000, &out));
	zone_free(z);
}

TEST(a_rare_day_is_found)
{
	CHECK_INT(next_of("0 0 29 2 *", "UTC", at_utc(2096, 3, 1, 0, 0)),
		  at_utc(2104, 2, 29, 0, 0));
	CHECK_INT(next_of("* * 29 2 *", "UTC", at_utc(2096, 3, 1, 0, 0)),
		  at_utc(2104, 2, 29, 0, 0));
	/* A Saturday or Sunday: */
	CHECK_INT(next_of("0 0 29 2 */6", "UTC", at_utc(2004, 3, 1, 0, 0)),
		  at_utc(2020, 2, 29, 0, 0));
}

#define NEED_ZONES()                                                                               \
	if (access(ZONE_FOLDER "/Europe/Berlin", R_OK) < 0)                                        \
	SKIP("this machine has no time zone database (tzdata)")

TEST(a_time_in_a_gap_runs_at_the_first_moment_after_it)
{
	NEED_ZONES();
	/* 2026-03-29 02:00 -> 03:00 in Berlin, which is 01:00 UTC */
	CHECK_INT(next_of("30 2 * * *", "Europe/Berlin", at_utc(2026, 3, 28, 12, 0)),
		  at_utc(2026, 3, 29, 1, 0));
	CHECK_INT(next_of("30 2 * * *", "Europe/Berlin", at_utc(2026, 3, 29, 1, 0)),
		  at_utc(2026, 3, 30, 0, 30));
	/* Several times in the gap are one run; 03:00 itself is the same moment. */
	CHECK_INT(next_of("*/20 2,3 * * *", "Europe/Berlin", at_utc(2026, 3, 29, 1, 0)),
		  at_utc(2026, 3, 29, 1, 20));
	/* Every hour: none is made up. */
	CHECK_INT(next_of("30 * * * *", "Europe/Berlin", at_utc(2026, 3, 29, 0, 30)),
		  at_utc(2026, 3, 29, 1, 30));
	/* A day that does not exist in Samoa: 2011-12-30. */
	CHECK_INT(next_of("0 12 30 12 *", "Pacific/Apia", at_utc(2011, 12, 1, 0, 0)),
		  at_utc(2011, 12, 30, 10, 0));
}

TEST(a_time_that_exists_twice_runs_once_at_the_first)
{
	NEED_ZONES();
	/* 2026-10-25 03:00 -> 02:00 in Berlin, at 01:00 UTC */
	CHECK_INT(next_of("30 2 * * *", "Europe/Berlin", at_utc(2026, 10, 24, 12, 0)),
		  at_utc(2026, 10, 25, 0, 30));
	CHECK_INT(next_of("30 2 * * *", "Europe/Berlin", at_utc(2026, 10, 25, 0, 30)),
		  at_utc(2026, 10, 26, 1, 30));
	/* Every hour: both. */
	CHECK_INT(next_of("30 * * * *", "Europe/Berlin", at_utc(2026, 10, 25, 0, 30)),
		  at_utc(2026, 10, 25, 1, 30));
	CHECK_INT(next_of("at 2026-10-25T02:30", "Europe/Berlin", 0), at_utc(2026, 10, 25, 0, 30));
	CHECK_INT(next_of("at 2026-03-29T02:30", "Europe/Berlin", 0), at_utc(2026, 3, 29, 1, 0));
}

/* ---- zones ---- */

static const char *zone_refusal(const char *name)
{
	struct zone *z = NULL;

	if (zone_load(&z, name, &err) == 0) {
		zone_free(z);
		return "accepted";
	}
	return err.msg;
}

TEST(an_unknown_zone_is_refused_with_a_suggestion)
{
	NEED_ZONES();
	CHECK(strstr(zone_refusal("Europe/Berln"), "did you mean 'Europe/Berlin'?"));
	CHECK(strstr(zone_refusal("europe/berlin"), "did you mean 'Europe/Berlin'?"));
	CHECK(strstr(zone_refusal("Berlin"), "did you mean 'Europe/Berlin'?"));
	CHECK(strstr(zone_refusal("Nowhere/Atall"), "names look like Europe/Berlin"));
	CHECK(strstr(zone_refusal("../../etc/passwd"), "there is no time zone"));
	CHECK(strstr(zone_refusal("/etc/localtime"), "there is no time zone"));
	CHECK(strstr(zone_refusal("Europe"), "there is no time zone"));
	CHECK(strstr(zone_refusal("tzdata.zi"), "there is no time zone"));
	CHECK(strstr(zone_refusal(""), "there is no time zone"));
}

TEST(without_a_database_only_utc_is_known)
{
	struct zone *z = NULL;

	CHECK(zone_load_from(&z, "/dev/null/zoneinfo", "Europe/Berlin", &err) < 0);
	CHECK(strstr(err.msg, "install tzdata"));
	CHECK(zone_load_from(&z, "/dev/null/zoneinfo", "UTC", &err) == 0);
	CHECK_INT(zone_offset(z, 1234567890), 0);
	zone_free(z);
}

TEST(a_damaged_file_of_a_zone_is_refused)
{
	struct zone *z = NULL;
	char bytes[4096];
	size_t n;
	FILE *f;

	NEED_ZONES();
	f = fopen(ZONE_FOLDER "/Europe/Berlin", "re");
	CHECK(f != NULL);
	n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	for (size_t cut = 0; cut < n; cut++) {
		if (zone_parse(&z, "cut", bytes, cut, &err) == 0) {
			printf("# accepted %zu of %zu bytes\n", cut, n);
			zone_free(z);
			CHECK(0);
		}
	}
	for (size_t i = 0; i < n; i++) { /* any byte may be wrong: refused, or another table */
		bytes[i] ^= (char)0xff;
		if (zone_parse(&z, "wrong", bytes, n, &err) == 0) {
			int64_t utc;

			zone_resolve(z, 1800000000, &utc);
			zone_free(z);
		}
		bytes[i] ^= (char)0xff;
	}
}

TEST(rules_for_later_years_are_read)
{
	struct zone_rule r;
	int64_t from, until;

	CHECK(zone_rule_parse("CET-1CEST,M3.5.0,M10.5.0/3", &r) == 0);
	CHECK_INT(r.standard, 3600);
	CHECK_INT(r.summer, 7200);
	zone_rule_changes(&r, 2050, &from, &until);
	CHECK_INT(from, at_utc(2050, 3, 27, 1, 0));
	CHECK_INT(until, at_utc(2050, 10, 30, 1, 0));
	CHECK(zone_rule_parse("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", &r) == 0);
	CHECK_INT(r.standard, 37800);
	CHECK_INT(r.summer, 39600);
	CHECK(zone_rule_parse("IST-2IDT,M3.4.4/26,M10.5.0", &r) == 0);
	zone_rule_changes(&r, 2026, &from, &until);
	CHECK_INT(from, at_utc(2026, 3, 27, 0, 0));
	CHECK(zone_rule_parse("<-03>3", &r) == 0);
	CHECK_INT(r.standard, -10800);
	CHECK(!r.has_summer);
	CHECK(zone_rule_parse("", &r) < 0);
	CHECK(zone_rule_parse("CET", &r) < 0);
	CHECK(zone_rule_parse("CET-1CEST", &r) < 0);
	CHECK(zone_rule_parse("CET-1CEST,M13.1.0,M4.1.0", &r) < 0);
	CHECK(zone_rule_parse("CET-1CEST,M3.1.0,M4.1.0x", &r) < 0);
	CHECK(zone_rule_parse("CET-1CEST,J0,J9", &r) < 0);
}

/* ---- an independent implementation ---- */

static const char *const table_zones[] = {
	"UTC",          "Europe/Berlin",       "America/New_York",  "America/Sao_Paulo",
	"Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Jerusalem",
	"Pacific/Apia", "Europe/Dublin",       "America/St_Johns",  "Antarctica/Troll",
};
/* Named hours: two years. In the first one changes of the clocks are in the table of the zone, in the
 * second they follow from its rule. With '*' hours, where each minute is looked at: some weeks around
 * the changes. */
static const struct {
	const char *text;
	int months[4]; /* from, until: year and month */
} table_cases[] = {
	{ "0 6 * * 1-5", { 2036, 6, 2038, 6 } },
	{ "30 2 * * *", { 2036, 6, 2038, 6 } },
	{ "15,45 1,2,3 * * *", { 2036, 6, 2038, 6 } },
	{ "0 0 29 2 *", { 2035, 6, 2038, 6 } },
	{ "0 12 1,15 * mon", { 2036, 6, 2038, 6 } },
	{ "0 0 31 * 5", { 2036, 6, 2038, 6 } },
	{ "59 23 28-31 * *", { 2036, 6, 2038, 6 } },
	{ "0 2 * mar,oct sun", { 2036, 6, 2038, 6 } },
	{ "0 0 */10 * 2", { 2036, 6, 2038, 6 } },
	{ "17 3 1 */3 *", { 2036, 6, 2038, 6 } },
	{ "5 */7 28-31 * *", { 2037, 3, 2037, 4 } },
	{ "*/20 * 29,30 3 *", { 2038, 3, 2038, 4 } },
	{ "30 * * 10-11 sat-sun", { 2037, 10, 2037, 12 } },
};

static int64_t table_bound(unsigned i, unsigned of)
{
	const int *m = table_cases[i].months + of;

	return at_utc(m[0], (unsigned)m[1], 1, 0, 0);
}

TEST(times_are_those_of_an_independent_implementation)
{
	char in[] = "/tmp/atoll-cron-XXXXXX", line[200], command[300];
	unsigned n = 0, total = 0;
	int fd, case_read = 0;
	long long want = 0;
	FILE *f;

	NEED_ZONES();
	if (system("python3 -c 'import zoneinfo' 2>/dev/null") != 0)
		SKIP("this machine has no Python with zoneinfo");
	fd = mkstemp(in);
	CHECK(fd >= 0);
	f = fdopen(fd, "w");
	for (unsigned i = 0; i < ARRAY_LEN(table_zones); i++)
		for (unsigned j = 0; j < ARRAY_LEN(table_cases); j++)
			fprintf(f, "%u|%lld|%lld|%s|%s\n", n++, (long long)table_bound(j, 0),
				(long long)table_bound(j, 2), table_zones[i], table_cases[j].text);
	fclose(f);
	snprintf(command, sizeof(command), "python3 " TESTS "/schedule/table.py < %s", in);
	f = popen(command, "re");
	CHECK(f != NULL);
	case_read = fgets(line, sizeof(line), f) && sscanf(line, "%u %lld", &n, &want) == 2;
	CHECK(case_read);
	for (unsigned at = 0; at < ARRAY_LEN(table_zones) * ARRAY_LEN(table_cases); at++) {
		unsigned j = at % ARRAY_LEN(table_cases);
		const char *zone = table_zones[at / ARRAY_LEN(table_cases)],
			   *text = table_cases[j].text;
		int64_t got = table_bound(j, 0), end = table_bound(j, 2);
		struct zone *z = NULL;
		struct cron c;

		CHECK(cron_parse(&c, text, &err) == 0 && zone_load(&z, zone, &err) == 0);
		while (cron_next(&c, z, 0, got, &got) && got <= end) {
			if (!case_read || n != at || want != got)
				printf("# %s in %s: %lld, not %lld of case %u\n", text, zone,
				       (long long)got, want, n);
			CHECK(case_read && n == at && want == got);
			case_read = fgets(line, sizeof(line), f) &&
				    sscanf(line, "%u %lld", &n, &want) == 2;
			total++;
		}
		if (case_read && n == at)
			printf("# %s in %s: %lld is missing\n", text, zone, want);
		CHECK(!case_read || n > at);
		zone_free(z);
	}
	CHECK(!case_read);
	CHECK_INT(pclose(f), 0);
	unlink(in);
	CHECK(total > 10000);
}
