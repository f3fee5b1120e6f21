/* time_param_test.c - parsing of time parameters. */
#include "api/time_param.h"
#include "tap.h"

#define NOW INT64_C(1800000000000000000)

static int64_t ns;
static struct err e;

static int parse(const char *text)
{
	ns = -1;
	return time_param_parse(text, NOW, &ns, &e);
}

TEST(dates_are_parsed_to_the_nanosecond)
{
	CHECK_INT(parse("2026-11-15T12:00:00Z"), 0);
	CHECK_INT(ns, INT64_C(1794744000000000000));
	CHECK_INT(parse("2026-11-15T12:00:00.25z"), 0);
	CHECK_INT(ns, INT64_C(1794744000250000000));
	CHECK_INT(parse("2026-11-15t13:30:00.000000000001+01:30"), 0);
	CHECK_INT(ns, INT64_C(1794744000000000000));
	CHECK_INT(parse("2026-11-15T11:00:00-01:00"), 0);
	CHECK_INT(ns, INT64_C(1794744000000000000));
	CHECK_INT(parse("1970-01-01T00:00:00Z"), 0);
	CHECK_INT(ns, 0);
}

TEST(numbers_are_milliseconds)
{
	CHECK_INT(parse("1794744000250"), 0);
	CHECK_INT(ns, INT64_C(1794744000250000000));
	CHECK_INT(parse("0"), 0);
	CHECK_INT(ns, 0);
	CHECK_INT(parse("9223372036854"), 0);
	CHECK_INT(parse("9223372036855"), -1);
	CHECK_INT(parse("99999999999999"), -1);
	CHECK_INT(parse("999999999999999999999999999999"), -1);
}

TEST(durations_are_how_long_ago)
{
	CHECK_INT(parse("15m"), 0);
	CHECK_INT(ns, NOW - INT64_C(900000000000));
	CHECK_INT(parse("500ms"), 0);
	CHECK_INT(ns, NOW - 500000000);
	CHECK_INT(parse("7d"), 0);
	CHECK_INT(ns, NOW - 7 * INT64_C(86400000000000));
	CHECK_INT(parse("99999d"), 0); /* before 1970: callers use 0 */
	CHECK_INT(parse("100000d"), -1);
	CHECK_INT(parse("d"), -1);
	CHECK_INT(parse("1.5d"), -1);
	CHECK_INT(parse("7days"), -1);
}

TEST(other_time_values_are_rejected)
{
	static const char *const bad[] = {
		"",
		" ",
		"yesterday",
		"-5",
		"+5",
		"2026-11-15",
		"2026-11-15T12:00:00",
		"2026-13-15T12:00:00Z",
		"2026-11-32T12:00:00Z",
		"2026-11-15T24:00:00Z",
		"2026-11-15T12:60:00Z",
		"2026-11-15T12:00:61Z",
		"2026-11-15T12:00:00Zx",
		"2026-11-15T12:00:00+1:00",
		"2026-11-15T12:00:00+24:00",
		"2026-11-15T12:00:00+01:60",
		"2026-11-15T12:00:00+01:-1",
		"2026-11-15X12:00:00Z",
		"1969-12-31T23:59:59Z",
		"9999-01-01T00:00:00Z",
		"2026- 1-15T12:00:00Z",
		"2026-11-15T-1:00:00Z",
		"0x10",
		"1e3",
		"m",
		"\xff",
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (parse(bad[i]) == 0)
			printf("# taken: '%s'\n", bad[i]);
		CHECK_INT(parse(bad[i]), -1);
		CHECK_INT(e.kind, ERR_INVALID);
	}
}
