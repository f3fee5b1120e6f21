/* rates.c - see rates.h. */
#include "usage/rates.h"
#include "base/cleanup.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define MIB UINT64_C(1048576)

/* `unit`: how many base units (struct store_use) the unit of the setting has. */
static const struct {
	const char *name;
	size_t at; /* a uint64_t of struct store_use */
	uint64_t unit;
} rate_rows[] = {
	[RATE_CPU] = { "cpu_second", offsetof(struct store_use, cpu_us), 1000000 },
	[RATE_MEMORY] = { "memory_gib_second", offsetof(struct store_use, memory_mib_ms),
			  1024 * 1000 },
	[RATE_DISK] = { "disk_gib_day", offsetof(struct store_use, disk_mib_s), 1024 * 86400 },
	[RATE_NETWORK] = { "network_gib", offsetof(struct store_use, network_bytes), 1024 * MIB },
	[RATE_GPU] = { "gpu_second", offsetof(struct store_use, gpu_us), 1000000 },
	[RATE_TOKENS_IN] = { "tokens_in_million", offsetof(struct store_use, tokens_in), 1000000 },
	[RATE_TOKENS_OUT] = { "tokens_out_million", offsetof(struct store_use, tokens_out),
			      1000000 },
};
_Static_assert(ARRAY_LEN(rate_rows) == RATE_COUNT, "a rate without a row");

const char *rate_name(enum rate r)
{
	return rate_rows[r].name;
}

/* ---- from text ---- */

/* A number of 10^-digits, up to `most` whole ones. */
static int rates_parse_decimal(const char *text, unsigned digits, uint64_t most, uint64_t *out,
			       struct err *e)
{
	size_t whole = strspn(text, "0123456789"), part = 0;
	uint64_t n = 0;

	if (text[whole] == '.')
		part = strspn(text + whole + 1, "0123456789");
	if (!whole || (text[whole] == '.' && !part) ||
	    text[whole + (text[whole] == '.') + part] != 0)
		return err_set(e, ERR_INVALID,
			       "'%.40s' is not a decimal number; write it like 12 or 0.000014",
			       text);
	if (part > digits)
		return err_set(e, ERR_INVALID, "'%.40s' has %zu digits after the point, at most %u",
			       text, part, digits);
	for (size_t i = 0; i < whole; i++) {
		n = n * 10 + (uint64_t)(text[i] - '0');
		if (n > most)
			return err_set(e, ERR_INVALID, "'%.40s' is out of range: 0 to %llu", text,
				       (unsigned long long)most);
	}
	for (size_t i = 0; i < digits; i++)
		n = n * 10 + (i < part ? (uint64_t)(text[whole + 1 + i] - '0') : 0);
	for (unsigned i = 0; i < digits; i++)
		most *= 10;
	if (n > most)
		return err_set(e, ERR_INVALID, "'%.40s' is above the maximum", text);
	*out = n;
	return 0;
}

int rates_parse(const char *text, uint64_t *out, struct err *e)
{
	return rates_parse_decimal(text, RATES_DIGITS, RATES_MOST, out, e);
}

int rates_parse_amount(const char *text, uint64_t *out_nano, struct err *e)
{
	return rates_parse_decimal(text, 9, RATES_MOST * 1000, out_nano, e);
}

int rates_check_currency(const char *text, struct err *e)
{
	if (strlen(text) == STORE_CURRENCY &&
	    strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == STORE_CURRENCY)
		return 0;
	return err_set(e, ERR_INVALID,
		       "'%.40s' is not a currency; write it with three capital letters, like EUR",
		       text);
}

/* ---- computing ---- */

uint64_t rates_cost(const struct rates *r, const struct store_use *u)
{
	unsigned __int128 cost = 0;

	for (unsigned i = 0; i < RATE_COUNT; i++) {
		uint64_t n = *(const uint64_t *)(const void *)((const char *)u + rate_rows[i].at);
		/* Of 10^-12 to 10^-9, rounded down. Both factors have at most 64 bits. */
		unsigned __int128 one =
			(unsigned __int128)n * r->v[i] / ((uint64_t)1000 * rate_rows[i].unit);

		cost += one < STORE_COST_MOST ? one : STORE_COST_MOST;
	}
	return cost < STORE_COST_MOST ? (uint64_t)cost : STORE_COST_MOST;
}

/* ---- as text and JSON ---- */

const char *rates_decimal(uint64_t n, unsigned digits, char out[RATES_TEXT])
{
	uint64_t scale = 1;
	size_t len;

	for (unsigned i = 0; i < digits; i++)
		scale *= 10;
	len = (size_t)snprintf(out, RATES_TEXT, "%llu.%0*llu", (unsigned long long)(n / scale),
			       (int)digits, (unsigned long long)(n % scale));
	while (out[len - 1] == '0')
		out[--len] = 0;
	if (out[len - 1] == '.')
		out[--len] = 0;
	return out;
}

json_t *rates_json(const struct rates *r)
{
	json_t *doc = json_object();
	char text[RATES_TEXT];

	for (unsigned i = 0; i < RATE_COUNT; i++)
		if (r->v[i])
			json_object_set_new(
				doc, rate_rows[i].name,
				json_string(rates_decimal(r->v[i], RATES_DIGITS, text)));
	return doc;
}

json_t *rates_use_json(const struct store_use *u)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "cpu_us", (json_int_t)u->cpu_us,
			 "memory_mib_ms", (json_int_t)u->memory_mib_ms, "disk_mib_s",
			 (json_int_t)u->disk_mib_s, "network_bytes", (json_int_t)u->network_bytes,
			 "gpu_us", (json_int_t)u->gpu_us, "tokens_in", (json_int_t)u->tokens_in,
			 "tokens_out", (json_int_t)u->tokens_out);
}

json_t *rates_amount_json(const struct store_use *u)
{
	char text[RATES_TEXT];

	return json_pack("{s:s, s:s}", "amount", rates_decimal(u->cost_nano, 9, text), "currency",
			 u->currency);
}
