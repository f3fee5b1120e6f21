/* period.c - see period.h. */
#include "usage/period.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static int period_month_days(int year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

static int32_t period_day(int year, int month, int day)
{
	struct tm tm = { .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day };

	return (int32_t)(timegm(&tm) / 86400);
}

/* Digits only: sscanf() would accept signs and blanks. */
static int period_number(const char *text, size_t n)
{
	int v = 0;

	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		v = v * 10 + (text[i] - '0');
	}
	return v;
}

int period_parse(const char *text, int last, int32_t *out_day, struct err *e)
{
	size_t len = strlen(text);
	int whole = len == 7, year, month, day;

	if ((len != 7 && len != 10) || text[4] != '-' || (!whole && text[7] != '-'))
		return err_set(e, ERR_INVALID,
			       "'%.20s' is not a day; write it like 2026-11-18 or 2026-11", text);
	year = period_number(text, 4);
	month = period_number(text + 5, 2);
	day = whole ? 1 : period_number(text + 8, 2);
	if (year < 1970 || month < 1 || month > 12 || day < 1 ||
	    day > period_month_days(year, month))
		return err_set(e, ERR_INVALID, "'%.20s' is not a day of the calendar since 1970",
			       text);
	*out_day = period_day(year, month, whole && last ? period_month_days(year, month) : day);
	return 0;
}

static struct tm period_calendar(int32_t day)
{
	time_t s = (time_t)day * 86400;
	struct tm tm;

	gmtime_r(&s, &tm);
	return tm;
}

const char *period_text(int32_t day, char out[PERIOD_TEXT])
{
	struct tm tm = period_calendar(day);

	strftime(out, PERIOD_TEXT, "%Y-%m-%d", &tm);
	return out;
}

int32_t period_month(int32_t day)
{
	return day - (period_calendar(day).tm_mday - 1);
}
