/* cron_words.c - an expression in plain words, so that a person sees what was understood. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "schedule/civil.h"
#include "schedule/cron.h"

#include <stdio.h>

static const char *const words_months[] = { "January",   "February", "March",    "April",
					    "May",       "June",     "July",     "August",
					    "September", "October",  "November", "December" };
static const char *const words_weekdays[] = { "Sunday",   "Monday", "Tuesday", "Wednesday",
					      "Thursday", "Friday", "Saturday" };

static unsigned words_count(uint64_t bits)
{
	return (unsigned)__builtin_popcountll(bits);
}

/* The distance of values that begin at `least` and fill the field; 0: no constant one. */
static unsigned words_step(uint64_t bits, unsigned least, unsigned most)
{
	for (unsigned step = 1; step <= most - least; step++) {
		uint64_t all = 0;

		for (unsigned v = least; v <= most; v += step)
			all |= UINT64_C(1) << v;
		if (all == bits)
			return step;
	}
	return 0;
}

static void words_value(struct buf *b, unsigned v, const char *const *names, unsigned first)
{
	if (names)
		buf_puts(b, names[v - first]);
	else
		buf_printf(b, "%u", v);
}

/* "1, 5 to 7" */
static void words_list(struct buf *b, uint64_t bits, unsigned most, const char *const *names,
		       unsigned first)
{
	const char *before = "";

	for (unsigned v = 0; v <= most; v++) {
		unsigned to = v;

		if (!(bits >> v & 1))
			continue;
		while (to < most && bits >> (to + 1) & 1)
			to++;
		buf_puts(b, before);
		words_value(b, v, names, first);
		if (to > v) {
			buf_puts(b, to == v + 1 ? ", " : " to ");
			words_value(b, to, names, first);
		}
		before = ", ";
		v = to;
	}
}

/* "at 06:00, 18:00", or "" if they are too many to list. */
static int words_times(struct buf *b, const struct cron *c)
{
	const char *before = "at ";

	if (words_count(c->minutes) * words_count(c->hours) > 6)
		return 0;
	for (unsigned h = 0; h < 24; h++)
		for (unsigned m = 0; m < 60; m++)
			if (c->hours >> h & 1 && c->minutes >> m & 1) {
				buf_printf(b, "%s%02u:%02u", before, h, m);
				before = ", ";
			}
	return 1;
}

static void words_time_of_day(struct buf *b, const struct cron *c)
{
	unsigned minutes = words_step(c->minutes, 0, 59), hours = words_step(c->hours, 0, 23);

	if (words_times(b, c))
		return;
	if (minutes == 1)
		buf_puts(b, "every minute");
	else if (minutes)
		buf_printf(b, "every %u minutes", minutes);
	else if (words_count(c->minutes) == 1 && c->minutes & 1 && hours)
		buf_puts(b, "on the hour");
	else {
		buf_puts(b, "at minute ");
		words_list(b, c->minutes, 59, NULL, 0);
	}
	if (hours > 1)
		buf_printf(b, " of every %u. hour", hours);
	else if (hours == 1)
		buf_puts(b, minutes ? "" : " of every hour");
	else {
		buf_puts(b, " of the hours ");
		words_list(b, c->hours, 23, NULL, 0);
	}
}

static void words_days(struct buf *b, const struct cron *c)
{
	int all_days = words_count(c->days) == 31, all_weekdays = words_count(c->weekdays) == 7;

	if (!all_days) {
		buf_puts(b, " on day ");
		words_list(b, c->days, 31, NULL, 0);
		buf_puts(b, " of the month");
	}
	if (!all_weekdays) {
		buf_puts(b, all_days ? " on " : c->both_days ? " if it is " : " or on ");
		words_list(b, c->weekdays, 6, words_weekdays, 0);
	}
	if (all_days && all_weekdays)
		buf_puts(b, " every day");
	if (words_count(c->months) < 12) {
		buf_puts(b, " in ");
		words_list(b, c->months, 12, words_months, 1);
	}
}

static void words_every(struct buf *b, int64_t s)
{
	if (s % 86400 == 0)
		buf_printf(b, "every %lld d", (long long)(s / 86400));
	else if (s % 3600 == 0)
		buf_printf(b, "every %lld h", (long long)(s / 3600));
	else if (s % 60 == 0)
		buf_printf(b, "every %lld min", (long long)(s / 60));
	else
		buf_printf(b, "every %lld s", (long long)s);
}

void cron_words(const struct cron *c, char out[CRON_WORDS])
{
	auto_buf struct buf b = { 0 };
	struct civil t;

	switch (c->kind) {
	case CRON_EVERY:
		words_every(&b, c->every_s);
		break;
	case CRON_AT:
		t = civil_of(c->local_s);
		buf_printf(&b, "once, on %s %04d-%02u-%02u at %02u:%02u", words_weekdays[t.weekday],
			   t.year, t.month, t.day, t.hour, t.minute);
		if (t.second)
			buf_printf(&b, ":%02u", t.second);
		break;
	case CRON_ONCE:
		buf_puts(&b, "once, at its start");
		break;
	case CRON_FIELDS:
		words_time_of_day(&b, c);
		words_days(&b, c);
	}
	snprintf(out, CRON_WORDS, "%s", buf_str(&b));
}
