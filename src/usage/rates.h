/* rates.h - what a unit of each resource costs, and the cost of a charge. Pure functions on integers: a rate is
 * an integer of 10^-12 of the currency for the unit of its setting, a cost is an integer of 10^-9. */
#pragma once
#include "base/err.h"
#include "store/usage.h"
#include <jansson.h>

enum rate {
	RATE_CPU,
	RATE_MEMORY,
	RATE_DISK,
	RATE_NETWORK,
	RATE_GPU,
	RATE_TOKENS_IN,
	RATE_TOKENS_OUT,
	RATE_COUNT
};

enum { RATES_DIGITS = 12 };          /* after the point */
#define RATES_MOST UINT64_C(1000000) /* the highest rate, in the currency */
enum { RATES_TEXT = 32 };

struct rates {
	uint64_t v[RATE_COUNT];
	char currency[STORE_CURRENCY + 1];
};

const char *rate_name(enum rate r); /* "cpu_second": the setting below rates. */

/* A decimal number like 12 or 0.000014, without sign and exponent, up to RATES_MOST. */
must_check int rates_parse(const char *text, uint64_t *out, struct err *e);
/* The same as an amount of money, in 10^-9: for budgets. */
must_check int rates_parse_amount(const char *text, uint64_t *out_nano, struct err *e);
/* Three capital letters, like EUR. */
must_check int rates_check_currency(const char *text, struct err *e);

/* A number of 10^-digits as a decimal text, without zeros at the end: 1500 with 3 digits is 1.5. */
const char *rates_decimal(uint64_t n, unsigned digits, char out[RATES_TEXT]);

/* The cost of the counts of u, in 10^-9: each resource is rounded down, and costs at most
 * STORE_COST_MOST. */
uint64_t rates_cost(const struct rates *r, const struct store_use *u);

json_t *rates_json(const struct rates *r); /* {cpu_second: "0.000014", ...}: those that are set */
json_t *rates_use_json(const struct store_use *u);    /* the counts */
json_t *rates_amount_json(const struct store_use *u); /* {amount, currency} */
