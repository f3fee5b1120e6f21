/* units.c - see units.h. Fractions are decimal and exact: no floating point, no locale. */
#include "base/units.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct unit {
	const char *suffix;
	uint64_t scale; /* maximum of the result */
};

struct measure { /* one kind of number */
	const char *name, *example;
	const struct unit *units;
	unsigned nunits;
	uint64_t max;
};

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

static const struct unit size_units[] = {
	{ "", 1 },     { "b", 1 },     { "k", KIB },  { "kb", KIB },  { "ki", KIB }, { "kib", KIB },
	{ "m", MIB },  { "mb", MIB },  { "mi", MIB }, { "mib", MIB }, { "g", GIB },  { "gb", GIB },
	{ "gi", GIB }, { "gib", GIB }, { "t", TIB },  { "tb", TIB },  { "ti", TIB }, { "tib", TIB },
};
static const struct unit time_units[] = {
	/* clang-format off */
	{ "ms", 1 }, { "s", 1000 }, { "m", 60 * 1000 }, { "h", 3600 * 1000 },
	/* clang-format on */
};
static const struct unit cpu_units[] = { { "", 1000 } };
static const struct unit count_units[] = { { "", 1 } };

static int units_refuse(struct err *e, const struct measure *m, const char *text, const char *why)
{
	return err_set(e, ERR_INVALID, "%s '%.40s' %s; write it like %s", m->name, text, why,
		       m->example);
}

static const struct unit *find_unit(const struct measure *m, const char *suffix)
{
	for (unsigned i = 0; i < m->nunits; i++)
		if (!strcasecmp(m->units[i].suffix, suffix))
			return &m->units[i];
	return NULL;
}

/* Reads the digits at *text as a number, and ten to the power of their count. -1: too many. */
static int units_digits(const char **text, uint64_t *out, uint64_t *out_power)
{
	*out = 0;
	*out_power = 1;
	for (; isdigit((unsigned char)**text); (*text)++)
		if (__builtin_mul_overflow(*out, 10, out) ||
		    __builtin_add_overflow(*out, (uint64_t)(**text - '0'), out) ||
		    __builtin_mul_overflow(*out_power, 10, out_power))
			return -1;
	return 0;
}

static int units_parse(const struct measure *m, const char *text, uint64_t *out, struct err *e)
{
	const char *at = text ? text : "";
	uint64_t whole, part = 0, power;
	const struct unit *unit;
	unsigned __int128 value;

	if (!*at)
		return units_refuse(e, m, at, "is empty");
	if (*at == '-')
		return units_refuse(e, m, text, "is negative");
	if (!isdigit((unsigned char)*at))
		return units_refuse(e, m, text, "is not a number");
	if (units_digits(&at, &whole, &power) < 0)
		return units_refuse(e, m, text, "is too large");
	power = 1;
	if (*at == '.' && (!isdigit((unsigned char)*++at) || units_digits(&at, &part, &power) < 0))
		return units_refuse(e, m, text, "has a fraction that cannot be read");
	unit = find_unit(m, at);
	if (!unit)
		return units_refuse(e, m, text,
				    *at ? "has a unit that is not known" : "has no unit");
	if (power > unit->scale && part)
		return units_refuse(e, m, text, "is more precise than supported");
	/* 128 bits hold both products for any digits. */
	value = (unsigned __int128)whole * unit->scale +
		(unsigned __int128)part * unit->scale / power;
	if (value > m->max)
		return units_refuse(e, m, text, "is too large");
	if (value == 0)
		return units_refuse(e, m, text, "is zero");
	*out = (uint64_t)value;
	return 0;
}

int units_parse_size(const char *text, uint64_t *out_bytes, struct err *e)
{
	static const struct measure size = { "size", "512M or 1.5G", size_units,
					     ARRAY_LEN(size_units), INT64_MAX };

	return units_parse(&size, text, out_bytes, e);
}

int units_parse_time(const char *text, uint32_t *out_ms, struct err *e)
{
	static const struct measure time = { "time", "30s or 500ms", time_units,
					     ARRAY_LEN(time_units), UINT32_MAX };
	uint64_t ms;

	if (units_parse(&time, text, &ms, e) < 0)
		return -1;
	*out_ms = (uint32_t)ms;
	return 0;
}

int units_parse_cpus(const char *text, uint32_t *out_milli, struct err *e)
{
	static const struct measure cpus = { "cpu number", "0.5 or 2", cpu_units,
					     ARRAY_LEN(cpu_units), UINT32_MAX };
	uint64_t milli;

	if (units_parse(&cpus, text, &milli, e) < 0)
		return -1;
	*out_milli = (uint32_t)milli;
	return 0;
}

int units_parse_count(const char *text, uint32_t max, uint32_t *out_count, struct err *e)
{
	const struct measure count = { "count", "64", count_units, ARRAY_LEN(count_units), max };
	uint64_t n;

	if (units_parse(&count, text, &n, e) < 0)
		return -1;
	*out_count = (uint32_t)n;
	return 0;
}

/* value in units of scale: "3", or "1.5" with one decimal. Truncated, never rounded up. */
static const char *units_decimal(char out[UNITS_TEXT], uint64_t value, uint64_t scale,
				 const char *unit)
{
	uint64_t whole = value / scale, tenth = value % scale * 10 / scale;

	if (tenth && whole < 100)
		snprintf(out, UNITS_TEXT, "%llu.%llu %s", (unsigned long long)whole,
			 (unsigned long long)tenth, unit);
	else
		snprintf(out, UNITS_TEXT, "%llu %s", (unsigned long long)whole, unit);
	return out;
}

const char *units_size(char out[UNITS_TEXT], uint64_t bytes)
{
	if (bytes < KIB)
		return units_decimal(out, bytes, 1, "B");
	if (bytes < MIB)
		return units_decimal(out, bytes, KIB, "KiB");
	if (bytes < GIB)
		return units_decimal(out, bytes, MIB, "MiB");
	if (bytes < TIB)
		return units_decimal(out, bytes, GIB, "GiB");
	return units_decimal(out, bytes, TIB, "TiB");
}

const char *units_time(char out[UNITS_TEXT], uint64_t us)
{
	uint64_t s = us / 1000000;

	if (us < 1000)
		return units_decimal(out, us, 1, "us");
	if (us < 10000)
		return units_decimal(out, us, 1000, "ms");
	if (s < 1)
		return units_decimal(out, us / 1000, 1, "ms");
	if (s < 60)
		return units_decimal(out, us, 1000000, "s");
	if (s < 3600)
		snprintf(out, UNITS_TEXT, "%u m %u s", (unsigned)(s / 60), (unsigned)(s % 60));
	else
		snprintf(out, UNITS_TEXT, "%llu h %u m", (unsigned long long)(s / 3600),
			 (unsigned)(s % 3600 / 60));
	return out;
}

enum field_unit { FIELD_NONE, FIELD_BYTES, FIELD_MS };

static enum field_unit unit_of_field(const char *name)
{
	const char *last = strrchr(name, '.');
	size_t n;

	name = last ? last + 1 : name;
	n = strlen(name);
	if (!strcmp(name, "mem") || !strcmp(name, "memory") || !strcmp(name, "disk") ||
	    !strcmp(name, "bandwidth"))
		return FIELD_BYTES;
	return n > 3 && !strcmp(name + n - 3, "_ms") ? FIELD_MS : FIELD_NONE;
}

int units_has_field(const char *name)
{
	return unit_of_field(name) != FIELD_NONE;
}

int units_parse_field(const char *name, const char *text, uint64_t *out, struct err *e)
{
	uint32_t ms;

	switch (unit_of_field(name)) {
	case FIELD_BYTES:
		return units_parse_size(text, out, e);
	case FIELD_MS:
		if (units_parse_time(text, &ms, e) < 0)
			return -1;
		*out = ms;
		return 0;
	default:
		return err_set(e, ERR_INVALID, "'%.40s' is not a number", text);
	}
}

uint64_t units_mib_ms(uint64_t bytes, uint64_t us)
{
	unsigned __int128 n = (unsigned __int128)bytes * us / (UINT64_C(1048576) * 1000);

	return n < INT64_MAX ? (uint64_t)n : INT64_MAX;
}
