/* units_test.c - parsing and printing of sizes, times and counts, and their errors. */
#include "base/units.h"
#include "tap.h"

#define K 1024ull
#define EXAMPLE "; write it like 512M or 1.5G"

TEST(a_json_field_has_the_unit_of_its_name)
{
	uint64_t n = 7;
	struct err e;

	CHECK(units_parse_field("mem", "512M", &n, &e) == 0 && n == 512u << 20);
	CHECK(units_parse_field("limits.disk", "1.5G", &n, &e) == 0 && n == 3ull << 29);
	CHECK(units_parse_field("timeouts.run_ms", "30s", &n, &e) == 0 && n == 30000);
	CHECK(units_has_field("idle_ms") && units_has_field("memory") && !units_has_field("_ms"));
	CHECK(!units_has_field("pids") && units_parse_field("pids", "5", &n, &e) < 0);
	CHECK(units_parse_field("mem", "30s", &n, &e) < 0 &&
	      units_parse_field("cpu_ms", "1G", &n, &e) < 0);
	CHECK(n == 30000); /* written on success only */
}

TEST(sizes_are_powers_of_1024)
{
	const struct {
		const char *text;
		uint64_t bytes;
	} rows[] = {
		{ "1", 1 },
		{ "4096", 4096 },
		{ "7b", 7 },
		{ "64k", 64 * K },
		{ "64K", 64 * K },
		{ "64kb", 64 * K },
		{ "64KiB", 64 * K },
		{ "512M", 512 * K * K },
		{ "1.5G", 1536 * K * K },
		{ "2Gi", 2 * K * K * K },
		{ "1t", K * K * K * K },
		{ "0.5k", 512 },
		{ "1.0", 1 },
		{ "007", 7 },
		{ "0.3k", 307 },
		{ "9223372036854775807", INT64_MAX },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t bytes = 0;
		struct err e = { 0 };

		if (units_parse_size(rows[i].text, &bytes, &e) < 0)
			printf("# %s\n", e.msg);
		CHECK_INT(bytes, rows[i].bytes);
	}
}

static const char *size_complaint(const char *text)
{
	static struct err e;
	uint64_t bytes = 77;

	e = (struct err){ 0 };
	if (units_parse_size(text, &bytes, &e) == 0 || e.kind != ERR_INVALID || bytes != 77)
		return "no complaint";
	return e.msg;
}

TEST(an_invalid_size_is_rejected_with_an_example)
{
	const struct {
		const char *text, *complaint;
	} rows[] = {
		{ "", "size '' is empty" EXAMPLE },
		{ NULL, "size '' is empty" EXAMPLE },
		{ "0", "size '0' is zero" EXAMPLE },
		{ "0.0001G", "no complaint" },
		{ "-5M", "size '-5M' is negative" EXAMPLE },
		{ "+5M", "size '+5M' is not a number" EXAMPLE },
		{ " 5M", "size ' 5M' is not a number" EXAMPLE },
		{ "12Q", "size '12Q' has a unit that is not known" EXAMPLE },
		{ "12M ", "size '12M ' has a unit that is not known" EXAMPLE },
		{ "12MM", "size '12MM' has a unit that is not known" EXAMPLE },
		{ "1e9", "size '1e9' has a unit that is not known" EXAMPLE },
		{ "0x10", "size '0x10' has a unit that is not known" EXAMPLE },
		{ "1,5G", "size '1,5G' has a unit that is not known" EXAMPLE },
		{ "1.5.5G", "size '1.5.5G' has a unit that is not known" EXAMPLE },
		{ ".5G", "size '.5G' is not a number" EXAMPLE },
		{ "5.G", "size '5.G' has a fraction that cannot be read" EXAMPLE },
		{ "1.5", "size '1.5' is more precise than supported" EXAMPLE },
		{ "nan", "size 'nan' is not a number" EXAMPLE },
		{ "9223372036854775808", "size '9223372036854775808' is too large" EXAMPLE },
		{ "16777216T", "size '16777216T' is too large" EXAMPLE },
		{ "99999999999999999999999999",
		  "size '99999999999999999999999999' is too large" EXAMPLE },
		{ "1.99999999999999999999999G",
		  "size '1.99999999999999999999999G' has a fraction that cannot be read" EXAMPLE },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_STR(size_complaint(rows[i].text), rows[i].complaint);
}

TEST(a_long_invalid_value_is_truncated_before_the_reason)
{
	char text[500];

	memset(text, '7', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	CHECK_STR(size_complaint(text),
		  "size '7777777777777777777777777777777777777777' is too large" EXAMPLE);
}

TEST(times_need_a_unit)
{
	const struct {
		const char *text;
		uint32_t ms;
	} rows[] = {
		{ "500ms", 500 },    { "30s", 30000 },
		{ "1.5s", 1500 },    { "0.001s", 1 },
		{ "2m", 120000 },    { "1h", 3600000 },
		{ "0.5h", 1800000 }, { "1193h", 1193u * 3600000 },
	};
	uint32_t ms;
	struct err e;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK(units_parse_time(rows[i].text, &ms, &e) == 0);
		CHECK_INT(ms, rows[i].ms);
	}
	CHECK(units_parse_time("30", &ms, &e) < 0);
	CHECK_STR(e.msg, "time '30' has no unit; write it like 30s or 500ms");
	CHECK(units_parse_time("0s", &ms, &e) < 0);
	CHECK(units_parse_time("0.5ms", &ms, &e) < 0);
	CHECK(units_parse_time("1194h", &ms, &e) < 0); /* 32 bits are 1193.04 hours */
	CHECK_STR(e.msg, "time '1194h' is too large; write it like 30s or 500ms");
	CHECK(units_parse_time("3d", &ms, &e) < 0);
}

TEST(cpus_are_parsed_as_thousandths)
{
	uint32_t milli;
	struct err e;

	CHECK(units_parse_cpus("2", &milli, &e) == 0);
	CHECK_INT(milli, 2000);
	CHECK(units_parse_cpus("0.5", &milli, &e) == 0);
	CHECK_INT(milli, 500);
	CHECK(units_parse_cpus("0.001", &milli, &e) == 0);
	CHECK_INT(milli, 1);
	CHECK(units_parse_cpus("0.0001", &milli, &e) < 0);
	CHECK(units_parse_cpus("0", &milli, &e) < 0);
	CHECK(units_parse_cpus("all", &milli, &e) < 0);
	CHECK(units_parse_cpus("5000000", &milli, &e) < 0);
}

TEST(counts_are_integers_within_their_limit)
{
	uint32_t n;
	struct err e;

	CHECK(units_parse_count("64", 100, &n, &e) == 0);
	CHECK_INT(n, 64);
	CHECK(units_parse_count("100", 100, &n, &e) == 0);
	CHECK(units_parse_count("101", 100, &n, &e) < 0);
	CHECK(units_parse_count("1.5", 100, &n, &e) < 0);
	CHECK(units_parse_count("64k", 100000, &n, &e) < 0);
	CHECK(units_parse_count("0", 100, &n, &e) < 0);
	CHECK_INT(n, 100);
}

TEST(sizes_are_printed_with_one_or_two_digits)
{
	char out[UNITS_TEXT];

	CHECK_STR(units_size(out, 0), "0 B");
	CHECK_STR(units_size(out, 12), "12 B");
	CHECK_STR(units_size(out, 1023), "1023 B");
	CHECK_STR(units_size(out, K), "1 KiB");
	CHECK_STR(units_size(out, 1536), "1.5 KiB");
	CHECK_STR(units_size(out, K * K - 1), "1023 KiB"); /* never more than there is */
	CHECK_STR(units_size(out, 256 * K * K), "256 MiB");
	CHECK_STR(units_size(out, 3 * K * K * K / 2), "1.5 GiB");
	CHECK_STR(units_size(out, 2 * K * K * K * K), "2 TiB");
	CHECK_STR(units_size(out, UINT64_MAX), "16777215 TiB");
}

TEST(durations_are_printed_in_a_readable_unit)
{
	char out[UNITS_TEXT];

	CHECK_STR(units_time(out, 0), "0 us");
	CHECK_STR(units_time(out, 850), "850 us");
	CHECK_STR(units_time(out, 2100), "2.1 ms");
	CHECK_STR(units_time(out, 40700), "40 ms");
	CHECK_STR(units_time(out, 999999), "999 ms");
	CHECK_STR(units_time(out, 2100000), "2.1 s");
	CHECK_STR(units_time(out, 59999999), "59.9 s");
	CHECK_STR(units_time(out, 185000000), "3 m 5 s");
	CHECK_STR(units_time(out, 7500000000ull), "2 h 5 m");
	CHECK(strlen(units_time(out, UINT64_MAX)) < UNITS_TEXT - 1);
}

TEST(memory_is_counted_in_mebibytes_times_milliseconds)
{
	CHECK_INT(units_mib_ms(1048576, 1000), 1);
	CHECK_INT(units_mib_ms(1048576, 999), 0);
	CHECK_INT(units_mib_ms(512 << 20, 1500000), 768000);
	CHECK_INT(units_mib_ms(0, 1500000), 0);
	CHECK_INT(units_mib_ms(UINT64_MAX, UINT64_MAX), INT64_MAX);
}
