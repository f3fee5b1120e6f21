/* Rates and costs: decimal texts become integers, and nothing is a floating-point number. */
#include "usage/rates.h"
#include "base/cleanup.h"
#include "tap.h"

static struct err err;

static uint64_t rate_of(const char *text)
{
	uint64_t n = UINT64_MAX;

	return rates_parse(text, &n, &err) < 0 ? UINT64_MAX : n;
}

TEST(a_rate_is_read_without_rounding)
{
	CHECK_INT(rate_of("0"), 0);
	CHECK_INT(rate_of("1"), 1000000000000);
	CHECK_INT(rate_of("0.000014"), 14000000);
	CHECK_INT(rate_of("0.000000000001"), 1);
	CHECK_INT(rate_of("999999.999999999999"), 999999999999999999);
	CHECK_INT(rate_of("1000000"), 1000000000000000000);
	CHECK_INT(rate_of("00012.50"), 12500000000000);
}

TEST(a_text_that_is_no_rate_is_rejected_with_its_reason)
{
	static const char *const bad[] = {
		"",   "-1", "+1", "NaN",   "nan", "inf", "-0",       "1e-6", "1E30", "0x1", " 1",
		"1 ", ".5", "5.", "1.2.3", "1,5", "1_0", "\xd9\xa1", "1e",   "0.0.", "--1"
	};

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK_INT(rate_of(bad[i]), UINT64_MAX);
		CHECK(err.kind == ERR_INVALID);
		CHECK(strstr(err.msg, "is not a decimal number"));
	}
	CHECK_INT(rate_of("1000000000000000000000000000000"), UINT64_MAX); /* 10^30 */
	CHECK_STR(err.msg, "'1000000000000000000000000000000' is out of range: 0 to 1000000");
	CHECK_INT(rate_of("18446744073709551617"), UINT64_MAX); /* 2^64 + 1 */
	CHECK_INT(rate_of("1000001"), UINT64_MAX);
	CHECK_INT(rate_of("1000000.000000000001"), UINT64_MAX);
	CHECK_STR(err.msg, "'1000000.000000000001' is above the maximum");
	CHECK_INT(rate_of("0.0000000000001"), UINT64_MAX);
	CHECK_STR(err.msg, "'0.0000000000001' has 13 digits after the point, at most 12");
}

TEST(an_amount_of_money_has_nine_digits)
{
	uint64_t n;

	CHECK_INT(rates_parse_amount("12.5", &n, &err), 0);
	CHECK_INT(n, 12500000000);
	CHECK_INT(rates_parse_amount("0.000000001", &n, &err), 0);
	CHECK_INT(n, 1);
	CHECK_INT(rates_parse_amount("0.0000000001", &n, &err), -1);
	CHECK_INT(rates_parse_amount("-3", &n, &err), -1);
}

TEST(a_currency_is_three_capital_letters)
{
	static const char *const bad[] = { "", "eur", "EURO", "E\nR", "E R", "\xe2\x82\xac" };

	CHECK_INT(rates_check_currency("EUR", &err), 0);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_INT(rates_check_currency(bad[i], &err), -1);
}

TEST(a_cost_is_rounded_down_to_a_billionth)
{
	struct rates r = { 0 };
	struct store_use u = { .cpu_us = 1000000 };

	r.v[RATE_CPU] = rate_of("0.000014");
	CHECK_INT(rates_cost(&r, &u), 14000);
	u.cpu_us = 1; /* 0.014 of 10^-9 */
	CHECK_INT(rates_cost(&r, &u), 0);
	u.cpu_us = 72;
	CHECK_INT(rates_cost(&r, &u), 1);
	u.cpu_us = 71;
	CHECK_INT(rates_cost(&r, &u), 0);
}

TEST(every_resource_is_charged_at_its_unit)
{
	static const struct {
		enum rate rate;
		struct store_use use;
	} one[] = {
		{ RATE_CPU, { .cpu_us = 1000000 } },
		{ RATE_MEMORY, { .memory_mib_ms = 1024 * 1000 } },
		{ RATE_DISK, { .disk_mib_s = 1024 * 86400 } },
		{ RATE_NETWORK, { .network_bytes = UINT64_C(1) << 30 } },
		{ RATE_GPU, { .gpu_us = 1000000 } },
		{ RATE_TOKENS_IN, { .tokens_in = 1000000 } },
		{ RATE_TOKENS_OUT, { .tokens_out = 1000000 } },
	};

	for (unsigned i = 0; i < ARRAY_LEN(one); i++) {
		struct rates r = { 0 };

		r.v[one[i].rate] = rate_of("2.5");
		CHECK_INT(rates_cost(&r, &one[i].use), 2500000000);
		r.v[one[i].rate] = 0;
		CHECK_INT(rates_cost(&r, &one[i].use), 0);
	}
}

TEST(the_largest_counts_at_the_highest_rate_do_not_overflow)
{
	struct store_use u;
	struct rates r;

	memset(&u, 0xff, sizeof(u));
	for (unsigned i = 0; i < RATE_COUNT; i++)
		r.v[i] = rate_of("1000000");
	CHECK(rates_cost(&r, &u) == STORE_COST_MOST);
}

TEST(a_decimal_text_has_no_zeros_at_its_end)
{
	char text[RATES_TEXT];

	CHECK_STR(rates_decimal(0, 9, text), "0");
	CHECK_STR(rates_decimal(1, 9, text), "0.000000001");
	CHECK_STR(rates_decimal(1500000000, 9, text), "1.5");
	CHECK_STR(rates_decimal(1000000000, 9, text), "1");
	CHECK_STR(rates_decimal(UINT64_MAX, 9, text), "18446744073.709551615");
	CHECK_STR(rates_decimal(14000000, 12, text), "0.000014");
}
