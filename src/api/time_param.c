/* time_param.c - see time_param.h. */
#include "api/time_param.h"
#include "base/units.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_NS INT64_C(1000000000)

static int time_param_wrong(const char *text, struct err *e)
{
	return err_set(
		e, ERR_INVALID,
		"'%.40s' is not a time: write it like 2026-11-15T12:00:00Z, milliseconds since 1970, or how "
		"long ago, as in 15m",
		text);
}

/* ".25" as nanoseconds; further digits are ignored. */
static int64_t time_param_fraction(const char **at)
{
	int64_t ns = 0, unit = SECOND_NS / 10;

	if (**at != '.')
		return 0;
	for (++*at; isdigit((unsigned char)**at); ++*at, unit /= 10)
		ns += (**at - '0') * unit;
	return ns;
}

/* "Z" or "+01:00", as seconds to subtract; -1: neither. */
static int time_param_zone(const char *at, int *out_s)
{
	int h, m, n = 0;

	*out_s = 0;
	if (!strcmp(at, "Z") || !strcmp(at, "z"))
		return 0;
	if ((*at != '+' && *at != '-') || !isdigit((unsigned char)at[1]) ||
	    sscanf(at + 1, "%2d:%2d%n", &h, &m, &n) != 2 || n != 5 || at[6] || h > 23 || m > 59 ||
	    m < 0)
		return -1;
	*out_s = (h * 3600 + m * 60) * (*at == '-' ? -1 : 1);
	return 0;
}

/* sscanf alone would accept spaces and signs in place of digits. */
static int has_form(const char *text)
{
	static const char form[] = "0000-00-00T00:00:00";

	for (unsigned i = 0; form[i]; i++)
		if (form[i] == '0'   ? !isdigit((unsigned char)text[i])
		    : form[i] == 'T' ? text[i] != 'T' && text[i] != 't'
				     : text[i] != form[i])
			return 0;
	return 1;
}

static int parse_date(const char *text, int64_t *out_ns)
{
	struct tm tm = { 0 };
	const char *rest;
	int offset;
	int64_t ns;

	if (!has_form(text) ||
	    sscanf(text, "%4d-%2d-%2d%*1[Tt]%2d:%2d:%2d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		   &tm.tm_hour, &tm.tm_min, &tm.tm_sec) != 6)
		return -1;
	if (tm.tm_year < 1970 || tm.tm_year > 2200 || tm.tm_mon < 1 || tm.tm_mon > 12 ||
	    tm.tm_mday < 1 || tm.tm_mday > 31 || tm.tm_hour > 23 || tm.tm_min > 59 ||
	    tm.tm_sec > 60)
		return -1;
	rest = text + 19;
	ns = time_param_fraction(&rest);
	if (time_param_zone(rest, &offset) < 0)
		return -1;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	*out_ns = ((int64_t)timegm(&tm) - offset) * SECOND_NS + ns;
	return 0;
}

static int parse_number(const char *text, size_t digits, int64_t *out_ns)
{
	int64_t ms = 0;

	if (digits > 13)
		return -1;
	for (; *text; text++)
		ms = ms * 10 + (*text - '0');
	if (ms > INT64_MAX / 1000000) /* the year 2262 */
		return -1;
	*out_ns = ms * 1000000;
	return 0;
}

/* "30d": days ago. Other units are those of units_parse_time(), which ends at 49 days. */
static int time_param_days(const char *text, size_t digits, int64_t now_ns, int64_t *out_ns)
{
	if (!digits || digits > 5 || strcmp(text + digits, "d") != 0)
		return -1;
	*out_ns = now_ns - strtoll(text, NULL, 10) * 86400 * SECOND_NS;
	return 0;
}

int time_param_parse(const char *text, int64_t now_ns, int64_t *out_ns, struct err *e)
{
	size_t digits = strspn(text, "0123456789");
	uint32_t ms;
	struct err ignored;

	if (digits && !text[digits])
		return parse_number(text, digits, out_ns) < 0 ? time_param_wrong(text, e) : 0;
	if (parse_date(text, out_ns) == 0 || time_param_days(text, digits, now_ns, out_ns) == 0)
		return 0;
	if (units_parse_time(text, &ms, &ignored) < 0)
		return time_param_wrong(text, e);
	*out_ns = now_ns - (int64_t)ms * 1000000;
	return 0;
}
