/* zone_rule.h - the rule at the end of a TZif file: "CET-1CEST,M3.5.0,M10.5.0/3". For zone.c. */
#pragma once
#include <stdint.h>

struct zone_rule_day {
	char kind;                 /* 'M', 'J' (1..365 without Feb 29), 'D' (0..365) */
	unsigned month, week, day; /* 'M': day of the week in the n-th week; else only day */
	int32_t at_s;              /* local time, -167..167 hours */
};
struct zone_rule {
	int32_t standard, summer; /* offsets from UTC */
	int has_summer;
	struct zone_rule_day from, until; /* of summer time */
};

/* -1: not a rule. */
int zone_rule_parse(const char *text, struct zone_rule *out);
/* The two changes of a year: to summer time, and back. */
void zone_rule_changes(const struct zone_rule *r, int year, int64_t *out_from, int64_t *out_until);
