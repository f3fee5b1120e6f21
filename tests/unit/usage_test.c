/* Periods and comma-separated values of usage reports. */
#include "usage/csv.h"
#include "usage/period.h"
#include "usage/rates.h"
#include "base/cleanup.h"
#include "tap.h"

static struct err err;

static int32_t day_of(const char *text, int last)
{
	int32_t day = -1;

	return period_parse(text, last, &day, &err) < 0 ? -1 : day;
}

TEST(a_day_is_counted_since_1970_in_utc)
{
	char text[PERIOD_TEXT];

	CHECK_INT(day_of("1970-01-01", 0), 0);
	CHECK_INT(day_of("2026-11-18", 0), 20775);
	CHECK_INT(day_of("2026-11-18", 1), 20775);
	CHECK_STR(period_text(20775, text), "2026-11-18");
	CHECK_STR(period_text(day_of("2024-02-29", 0), text), "2024-02-29");
}

TEST(a_month_is_its_first_or_its_last_day)
{
	char text[PERIOD_TEXT];

	CHECK_STR(period_text(day_of("2026-02", 0), text), "2026-02-01");
	CHECK_STR(period_text(day_of("2026-02", 1), text), "2026-02-28");
	CHECK_STR(period_text(day_of("2024-02", 1), text), "2024-02-29");
	CHECK_STR(period_text(day_of("2000-02", 1), text), "2000-02-29");
	CHECK_STR(period_text(day_of("2100-02", 1), text), "2100-02-28");
	CHECK_STR(period_text(day_of("2026-12", 1), text), "2026-12-31");
	/* 31 days, also in March and October, when clocks are changed in many zones */
	CHECK_INT(day_of("2026-03", 1) - day_of("2026-03", 0), 30);
	CHECK_INT(day_of("2026-10", 1) - day_of("2026-10", 0), 30);
	CHECK_INT(period_month(20775), day_of("2026-11", 0));
	CHECK_INT(period_month(day_of("2026-11-01", 0)), day_of("2026-11", 0));
}

TEST(a_text_that_is_no_day_is_rejected)
{
	static const char *const bad[] = { "",           "2026",        "2026-1-1",   "2026-00-01",
					   "2026-13-01", "2026-02-30",  "2026-11-31", "2026-11-00",
					   "1969-12-31", "2026/11/18",  "+026-11-18", "2026-11-1 ",
					   "20261118",   "2026-11-18T", "today",      "2026-11-1x",
					   "-026-11-18", "2025-02-29" };

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK_INT(day_of(bad[i], 0), -1);
		CHECK(err.kind == ERR_INVALID);
	}
}

static const char *cell_of(const char *text)
{
	static struct buf out;

	buf_cut(&out, 0);
	csv_cell(&out, text);
	return buf_str(&out);
}

TEST(a_cell_is_quoted_where_necessary)
{
	CHECK_STR(cell_of("plain"), "plain");
	CHECK_STR(cell_of(""), "");
	CHECK_STR(cell_of("a,b"), "\"a,b\"");
	CHECK_STR(cell_of("a\"b"), "\"a\"\"b\"");
	CHECK_STR(cell_of("a\nb"), "\"a\nb\"");
}

TEST(a_cell_is_never_a_formula)
{
	CHECK_STR(cell_of("=1+1"), "\"'=1+1\"");
	CHECK_STR(cell_of("+1"), "\"'+1\"");
	CHECK_STR(cell_of("-1"), "\"'-1\"");
	CHECK_STR(cell_of("@SUM(A1)"), "\"'@SUM(A1)\"");
	CHECK_STR(cell_of("\t=1"), "\"'\t=1\"");
	CHECK_STR(cell_of("\r=1"), "\"'\r=1\"");
	CHECK_STR(cell_of("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
	CHECK_STR(cell_of("a=1"), "a=1");
}

TEST(a_row_has_as_many_cells_as_the_header)
{
	struct store_usage_row r = { .value = "blue",
				     .use = { .runs = 1,
					      .cpu_us = 2,
					      .output_bytes = 9,
					      .cost_nano = 1500000001,
					      .currency = "EUR" } };
	auto_buf struct buf out = { 0 };

	csv_usage_head(&out, "team");
	csv_usage_row(&out, &r);
	CHECK_STR(
		buf_str(&out),
		"team,runs,cpu_us,memory_mib_ms,disk_mib_s,network_bytes,gpu_us,tokens_in,tokens_out,"
		"output_bytes,cost,currency\r\n"
		"blue,1,2,0,0,0,0,0,0,9,1.500000001,EUR\r\n");
}
