/* usage.c - see usage.h. */
#include "gateway/usage.h"
#include "coordinator/cluster_client.h"
#include "coordinator/queries.h"
#include "gateway/gateway.h"
#include "gateway/settle.h"
#include "usage/period.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { USAGE_LATE_MS = 5000 };

struct gateway_usage {
	struct call *call;
	struct cluster_request request;
	struct timer late;
	struct settle settle;
	json_t *params; /* until the query is sent */
	usage_done *done;
	int32_t first_day;
	int with_days;
};

/* Sums of rows that are too large for a number are the largest one. */
static uint64_t usage_number(const json_t *row, unsigned column)
{
	uint64_t n = strtoull(query_text(row, column), NULL, 10);

	return n > INT64_MAX ? INT64_MAX : n;
}

static void usage_read_use(const json_t *row, struct store_use *out)
{
	/* Columns in the order of the query. */
	snprintf(out->currency, sizeof(out->currency), "%s", query_text(row, 1));
	out->runs = usage_number(row, 2);
	out->cpu_us = usage_number(row, 3);
	out->memory_mib_ms = usage_number(row, 4);
	out->disk_mib_s = usage_number(row, 5);
	out->network_bytes = usage_number(row, 6);
	out->gpu_us = usage_number(row, 7);
	out->tokens_in = usage_number(row, 8);
	out->tokens_out = usage_number(row, 9);
	out->output_bytes = usage_number(row, 10);
	out->cost_nano = usage_number(row, 11);
}

static void usage_read_rows(const json_t *rows, struct store_usage_rows *out)
{
	size_t n = json_array_size(rows);

	*out = (struct store_usage_rows){ .n = (unsigned)n };
	if (n > STORE_USAGE_MOST) {
		out->n = STORE_USAGE_MOST;
		out->more = 1;
	}
	out->v = calloc(out->n ? out->n : 1, sizeof(*out->v));
	if (!out->v)
		abort();
	for (unsigned i = 0; i < out->n; i++) {
		const json_t *row = json_array_get(rows, i);

		snprintf(out->v[i].value, sizeof(out->v[i].value), "%s", query_text(row, 0));
		usage_read_use(row, &out->v[i].use);
	}
}

static void usage_add_day(struct usage_answer *a, const json_t *row)
{
	int32_t today = store_day(fleet_now_ns()), day = (int32_t)query_int(row, 0),
		at = day - a->first_day;
	const struct store_usage u = { .executions = usage_number(row, 1),
				       .compute_ms = usage_number(row, 2),
				       .output_bytes = usage_number(row, 3),
				       .boxes_created = usage_number(row, 4) };

	if (at < 0 || at >= USAGE_DAYS)
		return;
	a->days[at] = u;
	if (day < period_month(today) || day > today)
		return;
	a->month.executions += u.executions;
	a->month.compute_ms += u.compute_ms;
	a->month.output_bytes += u.output_bytes;
	a->month.boxes_created += u.boxes_created;
}

/* The rows are by day, from the first day of this month at the latest. */
static void usage_add_spent(struct usage_answer *a, const char *currency)
{
	int32_t today = store_day(fleet_now_ns());
	char now[PERIOD_TEXT], month[PERIOD_TEXT];

	period_text(today, now);
	period_text(period_month(today), month);
	for (unsigned i = 0; i < a->rows.n; i++) {
		const struct store_usage_row *r = &a->rows.v[i];

		if (strcmp(r->use.currency, currency) != 0 || strcmp(r->value, month) < 0)
			continue;
		a->spent_month += r->use.cost_nano;
		a->spent_day += strcmp(r->value, now) == 0 ? r->use.cost_nano : 0;
	}
}

static void usage_drop(struct call *c)
{
	struct gateway_usage *x = c->state;

	if (!x)
		return;
	c->state = NULL;
	settle_end(&x->settle);
	json_decref(x->params);
	cluster_client_cancel(&x->request);
	timer_fini(&x->late);
	free(x);
}

static void usage_end(struct gateway_usage *x)
{
	struct call *c = x->call;

	c->drop = NULL;
	usage_drop(c);
}

static void usage_fail(struct gateway_usage *x, const char *why)
{
	struct call *c = x->call;

	http_set(c->req, "Retry-After", "1");
	call_error(c, 503, "unavailable",
		   "the database of the cluster, which has what all machines have used, does not "
		   "answer",
		   why, "try again; `atoll doctor` of the gateway shows the state of the database");
}

static void usage_answered(struct cluster_request *r, const json_t *answer, const struct err *e)
{
	struct gateway_usage *x = loop_owner(r, struct gateway_usage, request);
	const json_t *days = query_rows(answer, 2);
	struct usage_answer *a;
	usage_done *done = x->done;
	struct call *c = x->call;

	if (e) {
		usage_fail(x, e->msg);
		return;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		abort();
	a->first_day = x->first_day;
	usage_read_rows(query_rows(answer, 0), &a->rows);
	usage_read_rows(query_rows(answer, 1), &a->totals);
	for (size_t i = 0; i < json_array_size(days); i++)
		usage_add_day(a, json_array_get(days, i));
	a->boxes = (uint64_t)query_int(json_array_get(query_rows(answer, 3), 0), 0);
	if (x->with_days)
		usage_add_spent(a, c->api->conf.rates.currency);
	usage_end(x);
	done(c, a);
	usage_answer_free(a);
}

static void usage_is_late(struct timer *t)
{
	usage_fail(loop_owner(t, struct gateway_usage, late), "no answer within 5 s");
}

static void usage_send(struct gateway_usage *x)
{
	json_t *params = x->params;

	x->params = NULL;
	query_request(x->call->api->gateway->engines, &x->request, "usage", params);
}

static void usage_settled(struct settle *s)
{
	usage_send(loop_owner(s, struct gateway_usage, settle));
}

void gateway_usage_ask(struct call *c, const struct store_usage_filter *f, int with_days,
		       usage_done *done)
{
	struct cluster_client *engines = c->api->gateway->engines;
	int32_t from = f->from_day;
	struct gateway_usage *x;
	char first[3][16];

	if (!engines) {
		call_error(c, 503, "unavailable", "this gateway has not joined its cluster", "",
			   "atoll cluster init");
		return;
	}
	x = calloc(1, sizeof(*x));
	if (!x)
		abort();
	*x = (struct gateway_usage){
		.call = c, .done = done, .with_days = with_days, .request.done = usage_answered
	};
	x->first_day = usage_first_day(from, store_day(fleet_now_ns()));
	c->state = x;
	c->drop = usage_drop;
	timer_init(&x->late, c->api->loop, usage_is_late);
	timer_set(&x->late, USAGE_LATE_MS);
	snprintf(first[0], sizeof(first[0]), "%d", with_days ? x->first_day : from);
	snprintf(first[1], sizeof(first[1]), "%d", f->to_day);
	/* Without days none is after this one. */
	snprintf(first[2], sizeof(first[2]), "%d", with_days ? x->first_day : INT32_MAX);
	x->params = json_pack("[s?, s, s, s, s]", f->team, first[0], first[1],
			      store_usage_by_name(f->by), first[2]);
	x->settle.done = usage_settled;
	if (settle_begin(&x->settle, c->api->gateway, f->team))
		usage_send(x);
}
