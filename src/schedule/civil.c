/* civil.c - see civil.h. */
#include "schedule/civil.h"

/* The year begins in March, so that the leap day is its last one; an era is 400 years. */
int64_t civil_days(int year, unsigned month, unsigned day)
{
	int64_t y = (int64_t)year - (month <= 2), era = (y >= 0 ? y : y - 399) / 400;
	int64_t of_era = y - era * 400;
	int64_t of_year = (153 * (int64_t)(month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

int64_t civil_seconds(const struct civil *c)
{
	return civil_days(c->year, c->month, c->day) * CIVIL_DAY_S + c->hour * 3600 +
	       c->minute * 60 + c->second;
}

struct civil civil_of(int64_t local_s)
{
	int64_t days = local_s / CIVIL_DAY_S - (local_s % CIVIL_DAY_S < 0);
	int64_t second = local_s - days * CIVIL_DAY_S, z = days + 719468;
	int64_t era = (z >= 0 ? z : z - 146096) / 146097, of_era = z - era * 146097;
	int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
	int64_t m = (5 * of_year + 2) / 153;
	struct civil c = {
		.month = (unsigned)(m < 10 ? m + 3 : m - 9),
		.day = (unsigned)(of_year - (153 * m + 2) / 5 + 1),
		.hour = (unsigned)(second / 3600),
		.minute = (unsigned)(second / 60 % 60),
		.second = (unsigned)(second % 60),
		.weekday = (unsigned)(((days + 4) % 7 + 7) % 7),
	};

	c.year = (int)(year + era * 400 + (c.month <= 2));
	return c;
}

unsigned civil_month_days(int year, unsigned month)
{
	static const unsigned char days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}
