/* cron.c - see cron.h: parses expressions. cron_time.c computes times. */
#include "schedule/cron.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "schedule/civil.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const cron_months[] = { "jan", "feb", "mar", "apr", "may", "jun", "jul",
					   "aug", "sep", "oct", "nov", "dec", NULL };
static const char *const cron_weekdays[] = {
	"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL
};

static const struct cron_field {
	const char *what;
	unsigned least, most;
	const char *const *names; /* the first one is `least` */
} cron_fields[] = {
	{ "minute", 0, 59, NULL },
	{ "hour", 0, 23, NULL },
	{ "day of the month", 1, 31, NULL },
	{ "month", 1, 12, cron_months },
	{ "day of the week", 0, 7, cron_weekdays },
};
enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };

struct cron_reader {
	const char *text, *at;
	const struct cron_field *field;
	struct err *e;
};

static int cron_fail(struct cron_reader *r, const char *why, const char *hint)
{
	size_t n = strcspn(r->at, " \t");

	return err_set(r->e, ERR_INVALID, "'%.60s', character %u (%s): %s%s%.*s%s; %s", r->text,
		       (unsigned)(r->at - r->text) + 1, r->field ? r->field->what : "expression",
		       why, n ? " '" : "", (int)(n < 24 ? n : 24), r->at, n ? "'" : "", hint);
}

static int cron_fail_range(struct cron_reader *r, const char *why)
{
	char hint[80];

	if (r->field->names)
		snprintf(hint, sizeof(hint), "type %u to %u, or a name such as %s", r->field->least,
			 r->field->most, r->field->names[1]);
	else
		snprintf(hint, sizeof(hint), "type %u to %u", r->field->least, r->field->most);
	return cron_fail(r, why, hint);
}

static int cron_name(const char *text, size_t n, const char *const *names)
{
	for (int i = 0; names && names[i]; i++)
		if (strlen(names[i]) == n && !strncasecmp(names[i], text, n))
			return i;
	return -1;
}

/* A number or a name. is_name: it was a name. */
static int cron_value(struct cron_reader *r, unsigned *out, int *is_name)
{
	size_t letters = 0, digits = strspn(r->at, "0123456789");
	int name;

	while (isalpha((unsigned char)r->at[letters]))
		letters++;
	*is_name = letters > 0;
	if (letters) {
		name = cron_name(r->at, letters, r->field->names);
		if (name < 0)
			return cron_fail_range(r, r->field->names ? "there is no such name:"
								  : "this field has no names:");
		*out = r->field->least + (unsigned)name;
		r->at += letters;
		return 0;
	}
	if (!digits)
		return cron_fail_range(r, "a value is missing before");
	*out = 0;
	for (size_t i = 0; i < digits && *out < 1000; i++)
		*out = *out * 10 + (unsigned)(r->at[i] - '0');
	if (*out < r->field->least || *out > r->field->most)
		return cron_fail_range(r, "out of range:");
	r->at += digits;
	return 0;
}

static int cron_step(struct cron_reader *r, unsigned from, unsigned to, unsigned *out)
{
	size_t digits;
	unsigned v = 0;

	*out = 1;
	if (*r->at != '/')
		return 0;
	r->at++;
	digits = strspn(r->at, "0123456789");
	for (size_t i = 0; i < digits && v < 1000; i++)
		v = v * 10 + (unsigned)(r->at[i] - '0');
	if (!digits || !v)
		return cron_fail(r,
				 "a step must be a number of at least 1:", "type */5, for example");
	if (v > to - from)
		return cron_fail(r, "the step is larger than the range:",
				 "for long distances type: every 90m");
	r->at += digits;
	*out = v;
	return 0;
}

/* "*", "5", "1-5", each of the ranges with "/step". */
static int cron_part(struct cron_reader *r, uint64_t *bits)
{
	const char *begin = r->at;
	unsigned from = r->field->least, to = r->field->most, step;
	int is_range = 1, name = 0;

	if (*r->at == '*') {
		r->at++;
		to -= r->field->names == cron_weekdays; /* 7 is 0 */
	} else {
		if (cron_value(r, &from, &name) < 0)
			return -1;
		is_range = *r->at == '-';
		to = from;
		if (is_range) {
			r->at++;
			if (cron_value(r, &to, &name) < 0)
				return -1;
			if (name && to == 0 && from > 0 && r->field->names == cron_weekdays)
				to = 7; /* "sat-sun" */
		}
		if (to < from) {
			r->at = begin;
			return cron_fail(r, "the range ends before it begins:",
					 "type two ranges: 22-23,0-4");
		}
	}
	if (*r->at == '/' && !is_range) {
		r->at = begin;
		return cron_fail(r, "a step needs a range:", "type 5-59/15 or */15");
	}
	if (cron_step(r, from, to, &step) < 0)
		return -1;
	for (unsigned v = from; v <= to; v += step)
		*bits |= UINT64_C(1) << (r->field->names == cron_weekdays ? v % 7 : v);
	return 0;
}

static int cron_read_field(struct cron_reader *r, uint64_t *out, int *out_star)
{
	*out = 0;
	*out_star = *r->at == '*';
	for (;;) {
		if (cron_part(r, out) < 0)
			return -1;
		if (*r->at != ',')
			break;
		r->at++;
	}
	if (*r->at && !isspace((unsigned char)*r->at))
		return cron_fail_range(r, "this cannot follow:");
	return 0;
}

/* "31 2": a day that none of the months has. */
static int cron_never(const struct cron *c)
{
	if (!c->both_days)
		return 0; /* or a day of the week */
	for (unsigned m = 1; m <= 12; m++)
		for (unsigned d = 1; d <= civil_month_days(2000, m); d++)
			if (c->months >> m & 1 && c->days >> d & 1)
				return 0;
	return 1;
}

static int cron_parse_fields(struct cron *out, const char *text, const char *at, struct err *e)
{
	struct cron_reader r = { .text = text, .at = at, .e = e };
	uint64_t bits[FIELDS];
	int star[FIELDS];

	for (unsigned i = 0; i < FIELDS; i++) {
		while (isspace((unsigned char)*r.at))
			r.at++;
		r.field = &cron_fields[i];
		if (!*r.at)
			return cron_fail(&r, "the expression ends here",
					 "type five fields: minute hour day month weekday");
		if (cron_read_field(&r, &bits[i], &star[i]) < 0)
			return -1;
	}
	while (isspace((unsigned char)*r.at))
		r.at++;
	r.field = NULL;
	if (*r.at)
		return cron_fail(&r, "there are more than five fields:",
				 "seconds and years are not supported");
	*out = (struct cron){
		.kind = CRON_FIELDS,
		.minutes = bits[MINUTE],
		.hours = (uint32_t)bits[HOUR],
		.days = (uint32_t)bits[DAY],
		.months = (uint16_t)bits[MONTH],
		.weekdays = (uint8_t)bits[WEEKDAY],
		.star_hour = star[HOUR],
		.both_days = star[DAY] || star[WEEKDAY],
	};
	if (cron_never(out))
		return err_set(
			e, ERR_INVALID,
			"'%.60s' never occurs: no chosen month has such a day; choose another day, "
			"for example 0 0 28 2 *",
			text);
	return 0;
}

static int cron_parse_alias(struct cron *out, const char *text, const char *at, struct err *e)
{
	static const struct {
		const char *name, *fields;
	} aliases[] = {
		{ "@hourly", "0 * * * *" },   { "@daily", "0 0 * * *" },
		{ "@midnight", "0 0 * * *" }, { "@weekly", "0 0 * * 0" },
		{ "@monthly", "0 0 1 * *" },  { "@yearly", "0 0 1 1 *" },
		{ "@annually", "0 0 1 1 *" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(aliases); i++)
		if (!strcasecmp(at, aliases[i].name))
			return cron_parse_fields(out, text, aliases[i].fields, e);
	return err_set(e, ERR_INVALID,
		       "there is no '%.40s'; type @hourly, @daily, @weekly, @monthly or @yearly",
		       at);
}

static int cron_parse_every(struct cron *out, const char *at, struct err *e)
{
	uint32_t ms;

	if (units_parse_time(at, &ms, e) < 0)
		return err_in(e, "every");
	if (ms % 1000 || ms / 1000 < CRON_EVERY_LEAST_S || ms / 1000 > CRON_EVERY_MOST_S)
		return err_set(
			e, ERR_INVALID,
			"every '%.40s': type whole seconds, at least 1s, for example every 15m",
			at);
	*out = (struct cron){ .kind = CRON_EVERY, .every_s = ms / 1000 };
	return 0;
}

static int cron_parse_at(struct cron *out, const char *at, struct err *e)
{
	struct civil c = { 0 };
	int end = -1, n = sscanf(at, "%4d-%2u-%2u%*1[T ]%2u:%2u%n:%2u%n", &c.year, &c.month, &c.day,
				 &c.hour, &c.minute, &end, &c.second, &end);

	if (n < 5 || end < 0 || at[end] || !isdigit((unsigned char)*at))
		return err_set(e, ERR_INVALID,
			       "at '%.40s': type date and time, for example at 2026-12-01T06:00",
			       at);
	if (c.year < 1970 || c.year > 2199 || c.month < 1 || c.month > 12 || c.day < 1 ||
	    c.day > civil_month_days(c.year, c.month) || c.hour > 23 || c.minute > 59 ||
	    c.second > 59)
		return err_set(e, ERR_INVALID, "at '%.40s': there is no such date or time", at);
	*out = (struct cron){ .kind = CRON_AT, .local_s = civil_seconds(&c) };
	return 0;
}

/* The rest of the text after this word and spaces, or NULL. */
static const char *cron_after(const char *text, const char *word)
{
	size_t n = strlen(word);

	if (strncasecmp(text, word, n) != 0 || !isspace((unsigned char)text[n]))
		return NULL;
	text += n;
	return text + strspn(text, " \t");
}

int cron_parse(struct cron *out, const char *text, struct err *e)
{
	const char *at = text + strspn(text, " \t"), *rest;

	if (strlen(text) > CRON_TEXT)
		return err_set(e, ERR_INVALID, "the expression has %zu characters; at most %d",
			       strlen(text), CRON_TEXT);
	if (*at == '@')
		return cron_parse_alias(out, text, at, e);
	if ((rest = cron_after(at, "every")))
		return cron_parse_every(out, rest, e);
	if ((rest = cron_after(at, "at")) || (rest = cron_after(at, "once")))
		return cron_parse_at(out, rest, e);
	if (!strcasecmp(at, "once")) {
		*out = (struct cron){ .kind = CRON_ONCE };
		return 0;
	}
	if (!*at || isalpha((unsigned char)*at))
		return err_set(e, ERR_INVALID,
			       "'%.60s': type a cron expression (0 6 * * 1-5), @daily, every 15m, "
			       "at 2026-12-01T06:00 or once",
			       text);
	return cron_parse_fields(out, text, at, e);
}
