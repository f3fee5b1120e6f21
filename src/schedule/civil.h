/* civil.h - dates of the Gregorian calendar as numbers. "Local seconds" are the seconds since 1970 that
 * a clock on the wall would count, as if it showed UTC. */
#pragma once
#include <stdint.h>

struct civil {
	int year;
	unsigned month, day; /* 1..12, 1..31 */
	unsigned hour, minute, second;
	unsigned weekday; /* 0: Sunday */
};

enum { CIVIL_DAY_S = 86400 };

int64_t civil_days(int year, unsigned month, unsigned day); /* since 1970-01-01 */
int64_t civil_seconds(const struct civil *c);               /* without the weekday */
struct civil civil_of(int64_t local_s);
unsigned civil_month_days(int year, unsigned month);
