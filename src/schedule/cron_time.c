/* cron_time.c - the times of an expression; see cron.h. */
#include "schedule/cron.h"
#include "schedule/civil.h"
#include "schedule/zone.h"

/* February 29 on one day of the week is 40 years away at most. */
enum { SEARCH_DAYS = 41 * 366 };

static int cron_day_matches(const struct cron *c, const struct civil *t)
{
	int day = c->days >> t->day & 1, weekday = c->weekdays >> t->weekday & 1;

	return (c->months >> t->month & 1) && (c->both_days ? day && weekday : day || weekday);
}

/* The moment of a local time is not after `after`: neither are those of all local times before it. */
static int cron_is_past(const struct zone *z, int64_t local_s, int64_t after_s)
{
	int64_t utc;

	zone_resolve(z, local_s, &utc);
	return utc <= after_s;
}

static int cron_next_of_day(const struct cron *c, const struct zone *z, int64_t day_s,
			    int64_t after_s, int64_t *out_s)
{
	for (unsigned h = 0; h < 24; h++) {
		if (!(c->hours >> h & 1) || cron_is_past(z, day_s + h * 3600 + 3540, after_s))
			continue;
		for (unsigned m = 0; m < 60; m++) {
			if (!(c->minutes >> m & 1))
				continue;
			zone_resolve(z, day_s + h * 3600 + m * 60, out_s);
			if (*out_s > after_s)
				return 1;
		}
	}
	return 0;
}

/* Hours are named: local times in ascending order are moments in ascending order. */
static int cron_next_named(const struct cron *c, const struct zone *z, int64_t after_s,
			   int64_t *out_s)
{
	int64_t local = after_s + zone_offset(z, after_s);
	/* Two days before: a change of the clocks may have moved their times after this one. */
	int64_t day = local / CIVIL_DAY_S - (local % CIVIL_DAY_S < 0) - 2;

	for (unsigned n = 0; n < SEARCH_DAYS; n++, day++) {
		struct civil t = civil_of(day * CIVIL_DAY_S);
		int64_t utc;

		if (cron_day_matches(c, &t) &&
		    !cron_is_past(z, (day + 1) * CIVIL_DAY_S - 60, after_s) &&
		    cron_next_of_day(c, z, day * CIVIL_DAY_S, after_s, &utc)) {
			*out_s = utc;
			return 1;
		}
	}
	return 0;
}

/* Walks through the moments themselves. Until the next change of the clocks local time is UTC plus a
 * constant, so whole days and hours that do not match are skipped. */
static int cron_next_star(const struct cron *c, const struct zone *z, int64_t after_s,
			  int64_t *out_s)
{
	int64_t at = after_s + 1, end = after_s + (int64_t)SEARCH_DAYS * CIVIL_DAY_S;

	while (at < end) {
		int64_t change = zone_next_change(z, at), skip;
		struct civil t = civil_of(at + zone_offset(z, at));
		unsigned of_day = t.hour * 3600 + t.minute * 60 + t.second;

		if (!cron_day_matches(c, &t))
			skip = CIVIL_DAY_S - of_day;
		else if (!(c->hours >> t.hour & 1))
			skip = 3600 - of_day % 3600;
		else if (t.second || !(c->minutes >> t.minute & 1))
			skip = 60 - t.second;
		else {
			*out_s = at;
			return 1;
		}
		at = at + skip < change ? at + skip : change;
	}
	return 0;
}

int cron_next(const struct cron *c, const struct zone *z, int64_t anchor_s, int64_t after_s,
	      int64_t *out_s)
{
	int64_t utc;

	switch (c->kind) {
	case CRON_EVERY:
		utc = after_s < anchor_s ? 0 : (after_s - anchor_s) / c->every_s;
		*out_s = anchor_s + (utc + 1) * c->every_s;
		return 1;
	case CRON_AT:
		zone_resolve(z, c->local_s, &utc);
		*out_s = utc;
		return utc > after_s;
	case CRON_ONCE:
		*out_s = anchor_s;
		return anchor_s > after_s;
	case CRON_FIELDS:
		break;
	}
	return c->star_hour ? cron_next_star(c, z, after_s, out_s)
			    : cron_next_named(c, z, after_s, out_s);
}
