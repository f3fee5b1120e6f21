/* usage.c - see usage.h. Callers see their own team; operators see every team. */
#include "v1ops/usage.h"
#include "api/usage_source.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "usage/csv.h"
#include "usage/period.h"

#include <stdio.h>
#include <string.h>

enum { REPORT_DAYS = 30, DAYS_MAX = 366 };

static const struct field usage_by_values[] = { FIELD_VALUE("team"),    FIELD_VALUE("key"),
						FIELD_VALUE("tag"),     FIELD_VALUE("template"),
						FIELD_VALUE("runtime"), FIELD_VALUE("day"),
						FIELD_VALUE("month"),   { 0 } };
static const struct field usage_formats[] = { FIELD_VALUE("json"), FIELD_VALUE("csv"), { 0 } };

const struct field usage_query[] = {
	/* clang-format off */
	{ "team", FIELD_TEXT, 0, 0, STORE_NAME, "the team (default: the caller's); only operators may name another team, or * for all", NULL },
	{ "days", FIELD_INT, 0, 1, DAYS_MAX, "without `by`: number of days, including today (default 7)", NULL },
	{ "by", FIELD_CHOICE, 0, 0, 0, "one row for each team, key, tag, template, runtime, day or month, with its cost", usage_by_values },
	{ "from", FIELD_TEXT, 0, 0, 32, "first day in UTC, like 2026-11-18, or a month, like 2026-11 (default: 30 days ago)", NULL },
	{ "to", FIELD_TEXT, 0, 0, 32, "last day, which is included, or a month (default: today)", NULL },
	{ "format", FIELD_CHOICE, 0, 0, 0, "json (default) or csv; the same as Accept: text/csv", usage_formats },
	{ 0 },
	/* clang-format on */
};

static int usage_wants_csv(struct call *c)
{
	const char *format = call_query(c, "format"), *accept = http_header(c->req, "accept");

	return format ? !strcmp(format, "csv") : accept && strstr(accept, "text/csv") != NULL;
}

int usage_is_report(struct call *c)
{
	return call_query(c, "by") || call_query(c, "from") || call_query(c, "to") ||
	       usage_wants_csv(c);
}

/* 0: answered. */
static int usage_read_filter(struct call *c, struct store_usage_filter *f, struct err *e)
{
	const char *team = call_query(c, "team"), *by = call_query(c, "by"),
		   *from = call_query(c, "from"), *to = call_query(c, "to");
	int operates = principal_is_operator(&c->who);

	f->by = STORE_BY_DAY;
	if (by && store_usage_by_parse(by, &f->by) < 0)
		return err_set(e, ERR_INVALID, "?by=%.20s is not known", by);
	f->to_day = store_day(fleet_now_ns());
	if (to && period_parse(to, 1, &f->to_day, e) < 0)
		return err_in(e, "?to=");
	f->from_day = f->to_day - (REPORT_DAYS - 1);
	if (from && period_parse(from, 0, &f->from_day, e) < 0)
		return err_in(e, "?from=");
	if (f->from_day > f->to_day)
		return err_set(e, ERR_INVALID, "?from=%.20s is after ?to=", from);
	if (f->to_day - f->from_day >= DAYS_MAX)
		return err_set(e, ERR_INVALID, "?from= and ?to= span %d days, at most %d",
			       f->to_day - f->from_day + 1, DAYS_MAX);
	if (!team)
		team = operates && f->by == STORE_BY_TEAM ? "*" : c->who.team;
	f->team = strcmp(team, "*") ? team : NULL;
	if (!operates && (!f->team || strcmp(team, c->who.team) != 0))
		return err_set(e, ERR_NOT_FOUND, "there is no such team: %.64s", team);
	return 0;
}

static json_t *usage_row_json(const struct store_use *u)
{
	return json_pack("{s:I, s:I, s:o, s:o}", "runs", (json_int_t)u->runs, "output_bytes",
			 (json_int_t)u->output_bytes, "usage", rates_use_json(u), "cost",
			 rates_amount_json(u));
}

/* The name of a key, for people. */
static void usage_set_name(struct call *c, json_t *row, const char *id)
{
	struct store_key k;
	struct err e;

	if (store_key_get(c->api->store, id, &k, &e) == 0 && k.name[0])
		json_object_set_new(row, "name", json_string(k.name));
}

static json_t *usage_items_json(struct call *c, const struct store_usage_filter *f,
				const struct store_usage_rows *rows)
{
	json_t *items = json_array();

	for (unsigned i = 0; i < rows->n; i++) {
		json_t *row = usage_row_json(&rows->v[i].use);

		json_object_set_new(row, "value", json_string(rows->v[i].value));
		if (f->by == STORE_BY_KEY)
			usage_set_name(c, row, rows->v[i].value);
		json_array_append_new(items, row);
	}
	return items;
}

static void usage_send_csv(struct call *c, const struct store_usage_filter *f,
			   const struct store_usage_rows *rows)
{
	auto_buf struct buf text = { 0 };

	csv_usage_head(&text, store_usage_by_name(f->by));
	for (unsigned i = 0; i < rows->n; i++)
		csv_usage_row(&text, &rows->v[i]);
	http_set(c->req, "Content-Disposition", "attachment; filename=\"usage.csv\"");
	http_reply(c->req, 200, "text/csv; charset=utf-8", buf_str(&text), text.len);
}

static void usage_send_json(struct call *c, const struct store_usage_filter *f,
			    const struct store_usage_rows *rows,
			    const struct store_usage_rows *totals)
{
	json_t *total = json_array(), *doc;
	char from[PERIOD_TEXT], to[PERIOD_TEXT];

	for (unsigned i = 0; i < totals->n; i++)
		json_array_append_new(total, usage_row_json(&totals->v[i].use));
	doc = json_pack("{s:s, s:s, s:s, s:s?, s:o, s:o, s:b}", "by", store_usage_by_name(f->by),
			"from", period_text(f->from_day, from), "to", period_text(f->to_day, to),
			"team", f->team, "items", usage_items_json(c, f, rows), "total", total,
			"truncated", rows->more);
	call_json(c, 200, doc);
}

static void usage_report_done(struct call *c, const struct usage_answer *a)
{
	struct store_usage_filter f = { 0 };
	struct err e;

	if (usage_read_filter(c, &f, &e) < 0) /* over midnight */
		call_fail(c, &e);
	else if (usage_wants_csv(c))
		usage_send_csv(c, &f, &a->rows);
	else
		usage_send_json(c, &f, &a->rows, &a->totals);
}

void usage_report(struct call *c)
{
	struct store_usage_filter f = { 0 };
	struct err e;

	if (usage_read_filter(c, &f, &e) < 0)
		call_fail(c, &e);
	else
		usage_ask(c, &f, 0, usage_report_done);
}

static const struct store_use *usage_find_day(const struct store_usage_rows *rows, const char *day,
					      const char *currency)
{
	for (unsigned i = 0; i < rows->n; i++)
		if (!strcmp(rows->v[i].value, day) && !strcmp(rows->v[i].use.currency, currency))
			return &rows->v[i].use;
	return NULL;
}

void usage_add_costs(struct call *c, const struct store_usage_rows *rows, json_t *days)
{
	const char *currency = c->api->conf.rates.currency;
	struct store_use none = { 0 };
	json_t *day;
	size_t i;

	snprintf(none.currency, sizeof(none.currency), "%s", currency);
	json_array_foreach(days, i, day)
	{
		const char *text = json_string_value(json_object_get(day, "day"));
		const struct store_use *u = usage_find_day(rows, text, currency);

		json_object_set_new(day, "cost", rates_amount_json(u ? u : &none));
	}
}
