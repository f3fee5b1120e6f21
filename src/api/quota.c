/* quota.c - see quota.h. Counts are kept in memory and added to the store once a second: a crash
 * loses the counts of one second at most, which is in favour of the team. */
#include "api/quota.h"
#include "api/budget.h"
#include "base/log.h"
#include "fleet/box.h"
#include "store/teams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REREAD_MS = 5000, BURST_S = 2 };

struct team_count {
	struct team_count *next;
	struct store_team team; /* with the limits in force */
	uint64_t read_ms;       /* when the quotas were read */
	double tokens;          /* requests that are allowed now */
	uint64_t filled_ms;
	int32_t day;
	struct store_usage today, month; /* the numbers in the store plus those not written yet */
	struct store_usage unwritten;
	uint64_t cpu_us; /* the rest below a millisecond, not yet in unwritten.compute_ms */
	struct store_grant grants[STORE_RESOURCES]; /* of a node of a cluster */
};

struct quota {
	struct api *api;
	struct team_count *teams;
	struct fleet_subscriber subscriber;
	uint64_t cpu_us; /* of all teams, since the start */
};

static struct team_count *count_of(struct api *a, const char *team);

static uint64_t quota_number(const json_t *data, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(data, name));

	return n > 0 ? (uint64_t)n : 0;
}

/* The output of every program counts, also if no request waits for the program; CPU time is that of
 * boxes. */
static void quota_on_event(struct fleet_subscriber *x, const struct store_event *ev,
			   const json_t *data)
{
	struct quota *q = loop_owner(x, struct quota, subscriber);
	struct team_count *t;

	if (strcmp(ev->type, "run.ended") != 0)
		return;
	t = count_of(q->api, ev->team);
	t->unwritten.output_bytes += quota_number(data, "output_bytes");
}

int quota_init(struct api *a, struct err *e)
{
	(void)e;
	a->quota = calloc(1, sizeof(*a->quota));
	if (!a->quota)
		abort();
	a->quota->api = a;
	a->quota->subscriber.on_event = quota_on_event;
	fleet_subscribe(&a->fleet, &a->quota->subscriber);
	return 0;
}

static const struct plan *quota_plan_named(const struct api *a, const char *name)
{
	return plan_find(a->conf.plans, a->conf.nplans, name);
}

static uint64_t quota_ms(uint64_t seconds)
{
	return seconds == PLAN_NONE ? PLAN_NONE : seconds * 1000;
}

struct store_team quota_limits(const struct api *a, const struct store_team *own)
{
	static const struct plan no_plan;
	const struct store_team *conf = &a->conf.quota;
	const struct plan *named = quota_plan_named(a, own->plan), *p = named ? named : &no_plan;
	uint64_t rate =
		own->requests_per_second == QUOTA_NONE_RATE ? QUOTA_NONE : own->requests_per_second;
	struct store_team t = *own;

	t.boxes = plan_quota(own->boxes, p->boxes, conf->boxes);
	t.executions_per_day = plan_quota(own->executions_per_day, p->executions_per_day,
					  conf->executions_per_day);
	t.compute_ms_per_month =
		plan_quota(own->compute_ms_per_month, quota_ms(p->compute_seconds_per_month),
			   conf->compute_ms_per_month);
	t.output_bytes_per_day = plan_quota(own->output_bytes_per_day, p->output_bytes_per_day,
					    conf->output_bytes_per_day);
	t.requests_per_second =
		(uint32_t)plan_quota(rate, p->requests_per_second, conf->requests_per_second);
	return t;
}

/* The first day of this month. */
static int32_t month_begin(int64_t now_ns)
{
	time_t s = (time_t)(now_ns / 1000000000);
	struct tm tm;

	gmtime_r(&s, &tm);
	return store_day(now_ns) - (tm.tm_mday - 1);
}

static void quota_reread(struct api *a, struct team_count *t)
{
	int64_t now = fleet_now_ns();
	struct err e;

	t->read_ms = loop_now_ms();
	if (store_team_get(a->store, t->team.name, &t->team, &e) == 0)
		t->team = quota_limits(a, &t->team);
	if (t->day == store_day(now))
		return;
	t->day = store_day(now);
	memset(&t->today, 0, sizeof(t->today));
	memset(&t->month, 0, sizeof(t->month));
	(void)!store_usage_get(a->store, t->team.name, t->day, t->day, &t->today, &e);
	(void)!store_usage_get(a->store, t->team.name, month_begin(now), t->day, &t->month, &e);
}

static void quota_read_grants(struct api *a, struct team_count *t)
{
	struct err e;

	if (store_grants_get(a->store, t->team.name, t->grants, &e) < 0)
		log_error("grants of a team cannot be read", LOG_S("team", t->team.name),
			  LOG_E(&e));
}

static struct team_count *count_of(struct api *a, const char *team)
{
	struct team_count *t = a->quota->teams;

	while (t && strcmp(t->team.name, team) != 0)
		t = t->next;
	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t)
			abort();
		snprintf(t->team.name, sizeof(t->team.name), "%s", team);
		t->next = a->quota->teams;
		a->quota->teams = t;
		t->filled_ms = loop_now_ms();
		quota_reread(a, t);
		quota_read_grants(a, t);
		t->tokens = t->team.requests_per_second * (double)BURST_S;
	} else if (loop_now_ms() - t->read_ms > REREAD_MS || t->day != store_day(fleet_now_ns())) {
		quota_reread(a, t);
	}
	return t;
}

const struct plan *quota_plan(struct api *a, const char *team)
{
	return quota_plan_named(a, count_of(a, team)->team.plan);
}

uint64_t quota_max_lifetime_ms(struct api *a, const char *team)
{
	const struct plan *p = quota_plan(a, team);

	return plan_lower(p ? p->max_lifetime_ms : 0, a->fleet.conf.lifetime_max_ms);
}

static int quota_refuse(struct call *c, const char *what, uint64_t limit, int64_t retry_s)
{
	char why[120];

	snprintf(why, sizeof(why), "team %s may have %llu", c->who.team, (unsigned long long)limit);
	http_set(c->req, "Retry-After", "%lld", (long long)(retry_s < 1 ? 1 : retry_s));
	call_error(c, 429, "quota", what, why,
		   "an owner of team default can raise it: PUT /v1/teams/NAME");
	return 0;
}

static int64_t seconds_to_midnight(void)
{
	return 86400 - fleet_now_ns() / 1000000000 % 86400;
}

int quota_request(struct call *c)
{
	struct team_count *t = count_of(c->api, c->who.team);
	uint64_t now = loop_now_ms();
	double rate = t->team.requests_per_second;

	if (rate == 0)
		return 1;
	t->tokens += rate * (double)(now - t->filled_ms) / 1000;
	if (t->tokens > rate * BURST_S)
		t->tokens = rate * BURST_S;
	t->filled_ms = now;
	if (t->tokens < 1) {
		c->api->quota_refusals[QUOTA_REQUESTS]++;
		c->audited = 1; /* no audit row: a rejected request must be cheap */
		return quota_refuse(c, "too many requests per second", t->team.requests_per_second,
				    1);
	}
	t->tokens -= 1;
	return 1;
}

int quota_box(struct call *c)
{
	struct team_count *t = count_of(c->api, c->who.team);

	if (!budget_request(c))
		return 0;
	if (t->team.boxes && fleet_team_boxes(&c->api->fleet, c->who.team) >= t->team.boxes) {
		c->api->quota_refusals[QUOTA_BOXES]++;
		return quota_refuse(c, "too many boxes at once", t->team.boxes, 1);
	}
	t->unwritten.boxes_created++;
	return 1;
}

uint64_t quota_box_limit(struct api *a, const char *team)
{
	const struct plan *p = quota_plan(a, team);
	struct store_team own = { 0 };
	struct err e;

	if (store_team_get(a->store, team, &own, &e) < 0)
		return 0;
	return plan_quota(own.boxes, p ? p->boxes : 0, 0);
}

int quota_run_limits(struct api *a, const char *team, uint64_t out[STORE_RESOURCES])
{
	static const struct plan no_plan;
	const struct plan *named = quota_plan(a, team), *p = named ? named : &no_plan;
	struct store_team own = { 0 };
	struct err e;

	memset(out, 0, STORE_RESOURCES * sizeof(*out));
	if (store_team_get(a->store, team, &own, &e) < 0)
		return 0;
	out[STORE_EXECUTIONS] = plan_quota(own.executions_per_day, p->executions_per_day, 0);
	out[STORE_OUTPUT] = plan_quota(own.output_bytes_per_day, p->output_bytes_per_day, 0);
	out[STORE_COMPUTE] =
		plan_quota(own.compute_ms_per_month, quota_ms(p->compute_seconds_per_month), 0);
	return out[STORE_EXECUTIONS] || out[STORE_OUTPUT] || out[STORE_COMPUTE];
}

int32_t quota_period(enum store_resource r)
{
	int64_t now = fleet_now_ns();

	return r == STORE_COMPUTE ? month_begin(now) : store_day(now);
}

void quota_refuse_unknown(struct call *c)
{
	c->api->quota_refusals[QUOTA_EXECUTIONS]++;
	http_set(c->req, "Retry-After", "1");
	call_error(
		c, 429, "quota", "it is not known how much the team has used",
		"the database of the cluster does not answer, and the node has no part of the limit",
		"try again; atoll cluster check examines the database");
}

void quota_refuse_box(struct call *c, const char *why)
{
	c->api->quota_refusals[QUOTA_BOXES]++;
	if (!why) {
		quota_refuse(c, "too many boxes at once", quota_box_limit(c->api, c->who.team), 1);
		return;
	}
	http_set(c->req, "Retry-After", "1");
	call_error(c, 429, "quota", "it is not known how many boxes the team has", why,
		   "try again; atoll cluster check examines the database");
}

static uint64_t quota_used_of(const struct team_count *t, enum store_resource r)
{
	switch (r) {
	case STORE_EXECUTIONS:
		return t->today.executions + t->unwritten.executions;
	case STORE_OUTPUT:
		return t->today.output_bytes + t->unwritten.output_bytes;
	default:
		return t->month.compute_ms + t->unwritten.compute_ms;
	}
}

static uint64_t quota_limit_of(const struct store_team *q, enum store_resource r)
{
	return r == STORE_EXECUTIONS ? q->executions_per_day
	       : r == STORE_OUTPUT   ? q->output_bytes_per_day
				     : q->compute_ms_per_month;
}

/* 1: the limit of this machine, or what a gateway gave it of the limit of the cluster, is used up. */
static int quota_is_spent(const struct team_count *t, enum store_resource r, uint64_t *out_limit)
{
	const struct store_grant *g = &t->grants[r];
	uint64_t used = quota_used_of(t, r), own = quota_limit_of(&t->team, r);

	*out_limit = own && used >= own ? own : g->limit;
	return (own && used >= own) ||
	       (g->limit && used >= (g->period == quota_period(r) ? g->amount : 0));
}

static int quota_is_limited(const struct team_count *t, enum store_resource r)
{
	return quota_limit_of(&t->team, r) || t->grants[r].limit;
}

/* NULL: another program may run, and is counted. Else the name of the exceeded quota; *out_limit is
 * its limit. */
static const char *check_run(struct api *a, const struct team_count *t, uint64_t *out_limit)
{
	static const struct {
		enum quota_kind kind;
		const char *why;
	} over[STORE_RESOURCES] = {
		[STORE_EXECUTIONS] = { QUOTA_EXECUTIONS, "too many executions today" },
		[STORE_OUTPUT] = { QUOTA_OUTPUT, "too many bytes of output today" },
		[STORE_COMPUTE] = { QUOTA_COMPUTE, "too much computing this month" },
	};

	if (quota_is_limited(t, STORE_OUTPUT) || quota_is_limited(t, STORE_COMPUTE))
		/* So that programs that have just ended are counted. */
		run_writer_flush(&a->fleet.run_writer);
	for (unsigned r = 0; r < STORE_RESOURCES; r++)
		if (quota_is_spent(t, r, out_limit)) {
			a->quota_refusals[over[r].kind]++;
			return over[r].why;
		}
	return NULL;
}

static const char *count_run(struct api *a, struct team_count *t, uint64_t *out_limit)
{
	const char *over = check_run(a, t, out_limit);

	t->unwritten.executions += !over;
	return over;
}

/* ---- a node of a cluster ---- */

void quota_granted(struct api *a, const char *team, enum store_resource r, uint64_t *out_used,
		   uint64_t *out_amount)
{
	struct team_count *t = count_of(a, team);

	run_writer_flush(&a->fleet.run_writer);
	*out_used = quota_used_of(t, r);
	*out_amount = t->grants[r].period == quota_period(r) ? t->grants[r].amount : 0;
}

int quota_grant(struct api *a, const char *team, enum store_resource r, const struct store_grant *g,
		int lower, struct err *e)
{
	struct team_count *t = count_of(a, team);
	struct store_grant *own = &t->grants[r], now = *g;
	uint64_t used;

	if (g->limit &&
	    (g->period < own->period || (g->period == own->period && g->version <= own->version)))
		return 0;
	if (lower) {
		quota_granted(a, team, r, &used, &now.amount);
		if (now.amount > used)
			now.amount = used + (now.amount - used) / 2;
	}
	if (store_grant_put(a->store, team, r, &now, e) < 0)
		return -1;
	*own = now;
	return 0;
}

int quota_helper(struct call *c)
{
	uint64_t most;
	const char *what = check_run(c->api, count_of(c->api, c->who.team), &most);

	return what ? quota_refuse(c, what, most, seconds_to_midnight()) : 1;
}

int quota_run(struct call *c)
{
	uint64_t most;
	const char *what;

	if (!budget_request(c))
		return 0;
	what = count_run(c->api, count_of(c->api, c->who.team), &most);
	return what ? quota_refuse(c, what, most, seconds_to_midnight()) : 1;
}

int quota_item(struct api *a, const char *team, struct err *e)
{
	uint64_t most;
	const char *what;

	if (budget_check(a, team, e) < 0)
		return 0;
	what = count_run(a, count_of(a, team), &most);
	if (!what)
		return 1;
	err_set(e, ERR_LIMIT, "%s: team %.64s may have %llu", what, team, (unsigned long long)most);
	return 0;
}

unsigned quota_boxes_left(struct api *a, const char *team)
{
	const struct team_count *t = count_of(a, team);
	unsigned has;

	if (!t->team.boxes)
		return UINT32_MAX;
	has = fleet_team_boxes(&a->fleet, team);
	return t->team.boxes > has ? (unsigned)(t->team.boxes - has) : 0;
}

static void add_cpu(struct quota *q, struct team_count *t, uint64_t cpu_us)
{
	q->cpu_us += cpu_us;
	t->cpu_us += cpu_us;
	t->unwritten.compute_ms += t->cpu_us / 1000;
	t->cpu_us %= 1000;
}

void quota_used(struct api *a, const char *team, uint64_t cpu_us, uint64_t output_bytes)
{
	struct team_count *t = count_of(a, team);

	t->unwritten.boxes_created++;
	add_cpu(a->quota, t, cpu_us);
	t->unwritten.output_bytes += output_bytes;
}

void quota_computed(struct api *a, const char *team, uint64_t cpu_us)
{
	add_cpu(a->quota, count_of(a, team), cpu_us);
}

static void quota_add(struct store_usage *to, const struct store_usage *more)
{
	to->executions += more->executions;
	to->compute_ms += more->compute_ms;
	to->output_bytes += more->output_bytes;
	to->boxes_created += more->boxes_created;
}

static void write_out(struct api *a, struct team_count *t)
{
	static const struct store_usage nothing;
	struct err e;

	if (!memcmp(&t->unwritten, &nothing, sizeof(nothing)))
		return;
	if (store_usage_add(a->store, t->team.name, store_day(fleet_now_ns()), &t->unwritten, &e) <
	    0)
		return; /* the disk may be full: the counts remain in memory, and the next flush
			 * tries again */
	quota_add(&t->today, &t->unwritten);
	quota_add(&t->month, &t->unwritten);
	t->unwritten = nothing;
}

void quota_flush(struct api *a)
{
	for (struct team_count *t = a->quota->teams; t; t = t->next)
		write_out(a, t);
}

void quota_second(struct api *a)
{
	budget_second(a);
	quota_flush(a);
}

void quota_changed(struct api *a, const char *team)
{
	budget_changed(a, team);
	for (struct team_count **at = &a->quota->teams, *t; (t = *at); at = &t->next)
		if (!strcmp(t->team.name, team)) {
			write_out(a, t);
			*at = t->next;
			free(t);
			return;
		}
}

void quota_fini(struct api *a)
{
	budget_fini(a);
	if (a->quota)
		fleet_unsubscribe(&a->fleet, &a->quota->subscriber);
	while (a->quota && a->quota->teams) {
		struct team_count *t = a->quota->teams;

		write_out(a, t);
		a->quota->teams = t->next;
		free(t);
	}
	free(a->quota);
	a->quota = NULL;
}

json_t *quota_json(struct api *a, const char *team)
{
	struct team_count *t = count_of(a, team);

	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "boxes",
			 (json_int_t)fleet_team_boxes(&a->fleet, team), "executions_today",
			 (json_int_t)(t->today.executions + t->unwritten.executions),
			 "output_bytes_today",
			 (json_int_t)(t->today.output_bytes + t->unwritten.output_bytes),
			 "compute_ms_this_month",
			 (json_int_t)(t->month.compute_ms + t->unwritten.compute_ms),
			 "boxes_created_today",
			 (json_int_t)(t->today.boxes_created + t->unwritten.boxes_created));
}

uint64_t quota_cpu_us(const struct api *a)
{
	return a->quota->cpu_us;
}
