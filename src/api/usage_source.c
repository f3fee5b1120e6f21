/* usage_source.c - see usage_source.h. */
#include "api/usage_source.h"
#include "api/quota.h"
#include "usage/period.h"

#include <stdlib.h>

void usage_answer_free(struct usage_answer *a)
{
	if (!a)
		return;
	store_usage_rows_fini(&a->rows);
	store_usage_rows_fini(&a->totals);
	free(a);
}

int32_t usage_first_day(int32_t from_day, int32_t today)
{
	int32_t month = period_month(today);

	return from_day < month ? from_day : month;
}

json_t *usage_today_json(const struct usage_answer *a)
{
	int32_t today = store_day(fleet_now_ns()) - a->first_day;
	struct store_usage none = { 0 };
	const struct store_usage *u = today >= 0 && today < USAGE_DAYS ? &a->days[today] : &none;

	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "boxes", (json_int_t)a->boxes,
			 "executions_today", (json_int_t)u->executions, "output_bytes_today",
			 (json_int_t)u->output_bytes, "compute_ms_this_month",
			 (json_int_t)a->month.compute_ms, "boxes_created_today",
			 (json_int_t)u->boxes_created);
}

static int usage_read_days(struct api *a, const struct store_usage_filter *f,
			   struct usage_answer *out, struct err *e)
{
	int32_t today = store_day(fleet_now_ns());

	out->first_day = usage_first_day(f->from_day, today);
	out->boxes = fleet_team_boxes(&a->fleet, f->team);
	for (int32_t day = out->first_day; day <= today && day - out->first_day < USAGE_DAYS; day++)
		if (store_usage_get(a->store, f->team, day, day, &out->days[day - out->first_day],
				    e) < 0)
			return -1;
	if (store_usage_get(a->store, f->team, period_month(today), today, &out->month, e) < 0 ||
	    store_usage_cost(a->store, f->team, a->conf.rates.currency, today, today,
			     &out->spent_day, e) < 0)
		return -1;
	return store_usage_cost(a->store, f->team, a->conf.rates.currency, period_month(today),
				today, &out->spent_month, e);
}

static int usage_read(struct api *a, const struct store_usage_filter *f, int with_days,
		      struct usage_answer *out, struct err *e)
{
	struct store_usage_filter all = *f;

	all.by = STORE_BY_NOTHING;
	if (store_usage_list(a->store, f, &out->rows, e) < 0 ||
	    store_usage_list(a->store, &all, &out->totals, e) < 0)
		return -1;
	return with_days ? usage_read_days(a, f, out, e) : 0;
}

void usage_ask(struct call *c, const struct store_usage_filter *f, int with_days, usage_done *done)
{
	struct usage_answer *a;
	struct err e;

	if (c->api->usage_of_cluster) {
		c->api->usage_of_cluster(c, f, with_days, done);
		return;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		abort();
	run_writer_flush(&c->api->fleet.run_writer);
	quota_second(c->api); /* writes the latest counts to the store */
	if (usage_read(c->api, f, with_days, a, &e) < 0)
		call_fail(c, &e);
	else
		done(c, a);
	usage_answer_free(a);
}
