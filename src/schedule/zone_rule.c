/* zone_rule.c - see zone_rule.h. */
#include "schedule/zone_rule.h"
#include "schedule/civil.h"

#include <ctype.h>
#include <stddef.h>

static const char *rule_number(const char *p, unsigned most, unsigned *out)
{
	unsigned v = 0, digits = 0;

	for (; p && isdigit((unsigned char)*p) && digits < 4; p++, digits++)
		v = v * 10 + (unsigned)(*p - '0');
	*out = v;
	return digits && v <= most ? p : NULL;
}

/* [+-]hh[:mm[:ss]] */
static const char *rule_time(const char *p, unsigned most_hours, int32_t *out_s)
{
	int sign = *p == '-' ? -1 : 1;
	unsigned h, m = 0, s = 0;

	p += *p == '-' || *p == '+';
	p = rule_number(p, most_hours, &h);
	if (p && *p == ':')
		p = rule_number(p + 1, 59, &m);
	if (p && *p == ':')
		p = rule_number(p + 1, 59, &s);
	*out_s = sign * (int32_t)(h * 3600 + m * 60 + s);
	return p;
}

/* The abbreviation is not used: letters, or anything between < and >. */
static const char *rule_abbreviation(const char *p)
{
	const char *from = p;

	if (*p == '<') {
		while (*p && *p != '>')
			p++;
		return *p ? p + 1 : NULL;
	}
	while (isalpha((unsigned char)*p))
		p++;
	return p - from >= 3 ? p : NULL;
}

static const char *rule_day(const char *p, struct zone_rule_day *d)
{
	*d = (struct zone_rule_day){ .kind = *p == 'M' || *p == 'J' ? *p : 'D', .at_s = 7200 };
	if (d->kind == 'M') {
		p = rule_number(p + 1, 12, &d->month);
		p = p && *p == '.' ? rule_number(p + 1, 5, &d->week) : NULL;
		p = p && *p == '.' ? rule_number(p + 1, 6, &d->day) : NULL;
		if (!p || !d->month || !d->week)
			return NULL;
	} else {
		p = rule_number(p + (d->kind == 'J'), 365, &d->day);
		if (!p || (d->kind == 'J' && !d->day))
			return NULL;
	}
	return *p == '/' ? rule_time(p + 1, 167, &d->at_s) : p;
}

int zone_rule_parse(const char *text, struct zone_rule *out)
{
	const char *p = rule_abbreviation(text);
	int32_t west;

	*out = (struct zone_rule){ 0 };
	if (!p || !(p = rule_time(p, 24, &west)))
		return -1;
	out->standard = -west;
	if (!*p)
		return 0;
	out->has_summer = 1;
	out->summer = out->standard + 3600;
	if (!(p = rule_abbreviation(p)))
		return -1;
	if (*p != ',') {
		if (!(p = rule_time(p, 24, &west)))
			return -1;
		out->summer = -west;
	}
	if (*p != ',' || !(p = rule_day(p + 1, &out->from)) || *p != ',' ||
	    !(p = rule_day(p + 1, &out->until)))
		return -1;
	return *p ? -1 : 0;
}

static int64_t rule_day_of(const struct zone_rule_day *d, int year)
{
	int64_t first;
	unsigned day, weekday;

	if (d->kind == 'D')
		return civil_days(year, 1, 1) + d->day;
	if (d->kind == 'J')
		return civil_days(year, 1, 1) + d->day - 1 +
		       (d->day >= 60 && civil_month_days(year, 2) == 29);
	first = civil_days(year, d->month, 1);
	weekday = civil_of(first * CIVIL_DAY_S).weekday;
	day = (d->day + 7 - weekday) % 7 + (d->week - 1) * 7;
	while (day >= civil_month_days(year, d->month)) /* week 5 is the last one */
		day -= 7;
	return first + day;
}

void zone_rule_changes(const struct zone_rule *r, int year, int64_t *out_from, int64_t *out_until)
{
	*out_from = rule_day_of(&r->from, year) * CIVIL_DAY_S + r->from.at_s - r->standard;
	*out_until = rule_day_of(&r->until, year) * CIVIL_DAY_S + r->until.at_s - r->summer;
}
