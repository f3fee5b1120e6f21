/* teams.c - see teams.h. Every caller can read its own team. Operators (owners of team "default")
 * can read all teams, and only they create, change and delete one; for other callers another team
 * does not exist.
 *
 * A quota that is not set for a team comes from the configuration (quota.*), so that a reload
 * changes it for all these teams. */
#include "v1/teams.h"
#include "api/network_answer.h"
#include "api/auth.h"
#include "api/budget.h"
#include "api/fields.h"
#include "api/quota.h"
#include "api/usage_source.h"
#include "base/cleanup.h"
#include "fleet/box_network.h"
#include "record/record.h"
#include "store/network.h"
#include "v1box/network.h"
#include "v1ops/usage.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define QUOTA_MAX (INT64_C(1) << 53)
#define QUOTA_HELP "-1: unlimited, 0: the configured default"
enum { RATE_MAX = 1000000 };

const struct field teams_put_fields[] = {
	{ "boxes", FIELD_INT, 0, -1, QUOTA_MAX, "boxes at the same time; " QUOTA_HELP, NULL },
	{ "executions_per_day", FIELD_INT, 0, -1, QUOTA_MAX,
	  "programs started per day; " QUOTA_HELP, NULL },
	{ "compute_ms_per_month", FIELD_INT, 0, -1, QUOTA_MAX,
	  "CPU time per month in milliseconds; " QUOTA_HELP, NULL },
	{ "output_bytes_per_day", FIELD_INT, 0, -1, QUOTA_MAX,
	  "output of programs per day in bytes; " QUOTA_HELP, NULL },
	{ "requests_per_second", FIELD_INT, 0, -1, RATE_MAX,
	  "with a burst of two seconds; " QUOTA_HELP, NULL },
	{ "plan", FIELD_TEXT, 0, 0, STORE_NAME, "a plan of the settings, [plan.NAME]; \"\": none",
	  NULL },
	{ "isolation", FIELD_TEXT, 0, 0, STORE_WORD,
	  "minimum isolation tier of all its boxes; \"\": none", NULL },
	{ 0 },
};
const struct field teams_list_query[] = {
	{ "after", FIELD_TEXT, 0, 0, STORE_NAME, "`next` of the previous page", NULL },
	{ 0 },
};
/* ---- as JSON ---- */

static const struct {
	const char *name;
	size_t at; /* a uint64_t of struct store_team */
} quotas[] = {
	{ "boxes", offsetof(struct store_team, boxes) },
	{ "executions_per_day", offsetof(struct store_team, executions_per_day) },
	{ "compute_ms_per_month", offsetof(struct store_team, compute_ms_per_month) },
	{ "output_bytes_per_day", offsetof(struct store_team, output_bytes_per_day) },
};

static json_t *limits_json(const struct store_team *t)
{
	json_t *doc = json_object();

	for (unsigned i = 0; i < ARRAY_LEN(quotas); i++) {
		uint64_t n = *(const uint64_t *)((const char *)t + quotas[i].at);

		json_object_set_new(doc, quotas[i].name,
				    n == QUOTA_NONE ? json_integer(-1)
				    : n             ? json_integer((json_int_t)n)
						    : json_null());
	}
	json_object_set_new(doc, "requests_per_second",
			    t->requests_per_second == QUOTA_NONE_RATE ? json_integer(-1)
			    : t->requests_per_second ? json_integer(t->requests_per_second)
						     : json_null());
	return doc;
}

/* quotas: the effective ones, null is no limit. own: those set for this team, -1 is
 * "not limited". */
static json_t *team_json(struct api *a, const struct store_team *t)
{
	struct store_team now = quota_limits(a, t);

	return json_pack("{s:s, s:o, s:o?, s:o, s:o, s:s}", "name", t->name, "created",
			 t->created_ns ? json_time((uint64_t)t->created_ns) : json_null(), "plan",
			 t->plan[0] ? json_string(t->plan) : NULL, "quotas", limits_json(&now),
			 "own", limits_json(t), "isolation", t->isolation);
}

/* ---- list, show ---- */

static void no_team(struct call *c, const char *name)
{
	call_error(c, 404, "not_found", "there is no such team", name, "list them: GET /v1/teams");
}

static int may_see(const struct call *c, const char *team)
{
	return !strcmp(team, c->who.team) || principal_is_operator(&c->who);
}

void teams_list(struct call *c)
{
	struct store_teams all = { 0 };
	json_t *items = json_array();
	const char *next = NULL;
	struct err e;

	if (store_team_list(c->api->store, call_query(c, "after"), &all, &e) < 0) {
		json_decref(items);
		call_fail(c, &e);
		return;
	}
	for (unsigned i = 0; i < all.n; i++)
		if (may_see(c, all.v[i].name))
			json_array_append_new(items, team_json(c->api, &all.v[i]));
	if (all.n == STORE_PAGE_MAX)
		next = http_strdup(c->req, all.v[all.n - 1].name, strlen(all.v[all.n - 1].name));
	store_teams_fini(&all);
	call_list(c, items, next);
}

/* 0: answered. */
static int teams_find(struct call *c, const char *name, struct store_team *out)
{
	struct err e;

	if (may_see(c, name)) {
		if (store_team_get(c->api->store, name, out, &e) == 0)
			return 1;
		if (e.kind == ERR_SYS) {
			call_fail(c, &e);
			return 0;
		}
	}
	no_team(c, name);
	return 0;
}

static json_t *teams_used_json(struct call *c, const struct store_team *t,
			       const struct usage_answer *a)
{
	json_t *doc = team_json(c->api, t),
	       *budget = budget_json(c->api, t->name, a->spent_day, a->spent_month);

	json_object_set_new(doc, "usage", usage_today_json(a));
	if (budget)
		json_object_set_new(doc, "budget", budget);
	return doc;
}

static void teams_show_used(struct call *c, const struct usage_answer *a)
{
	struct store_team t;

	if (teams_find(c, call_param(c, 0), &t))
		call_json(c, 200, teams_used_json(c, &t, a));
}

void teams_show(struct call *c)
{
	int32_t today = store_day(fleet_now_ns());
	struct store_team t;

	if (teams_find(c, call_param(c, 0), &t))
		usage_ask(c,
			  &(struct store_usage_filter){ .team = t.name,
							.from_day = today,
							.to_day = today,
							.by = STORE_BY_DAY },
			  1, teams_show_used);
}

/* ---- change ---- */

static int teams_operates(struct call *c)
{
	if (principal_is_operator(&c->who))
		return 1;
	if (strcmp(call_param(c, 0), c->who.team) != 0)
		no_team(c, call_param(c, 0));
	else
		call_error(c, 403, "denied", "a team cannot set its own quotas and network rules",
			   c->who.team, "owners of team default do");
	return 0;
}

/* 0: answered. */
static int teams_take_plan(struct call *c, struct store_team *t)
{
	const char *plan = call_text(c, "plan", NULL);

	if (!plan)
		return 1;
	if (*plan && strcmp(plan, t->plan) != 0 &&
	    !plan_find(c->api->conf.plans, c->api->conf.nplans, plan)) {
		call_error(c, 422, "invalid", "there is no such plan", plan,
			   "plans are sections [plan.NAME] of the settings");
		return 0;
	}
	snprintf(t->plan, sizeof(t->plan), "%s", plan);
	return 1;
}

/* 0: answered. */
static int teams_take_isolation(struct call *c, struct store_team *t)
{
	const char *least = call_text(c, "isolation", NULL);
	struct err e;

	if (!least)
		return 1;
	if (isolation_check_minimum(least, 0, &e) < 0) {
		err_in(&e, "isolation");
		call_fail(c, &e);
		return 0;
	}
	snprintf(t->isolation, sizeof(t->isolation), "%s", least);
	return 1;
}

static void take_quotas(struct call *c, struct store_team *t)
{
	int64_t rate = call_int(c, "requests_per_second", -2);

	for (unsigned i = 0; i < ARRAY_LEN(quotas); i++) {
		int64_t n = call_int(c, quotas[i].name, -2);

		if (n != -2)
			*(uint64_t *)((char *)t + quotas[i].at) = n < 0 ? QUOTA_NONE : (uint64_t)n;
	}
	if (rate != -2)
		t->requests_per_second = rate < 0 ? QUOTA_NONE_RATE : (uint32_t)rate;
}

void teams_put(struct call *c)
{
	struct store_team t = { 0 };
	int made = 0;
	struct err e;

	if (!teams_operates(c))
		return;
	if (!fields_is_name(call_param(c, 0), STORE_NAME)) {
		call_error(c, 400, "invalid", "this is not a valid team name", call_param(c, 0),
			   "letters, digits, '.', '_', '-'");
		return;
	}
	if (store_team_get(c->api->store, call_param(c, 0), &t, &e) < 0) {
		made = e.kind == ERR_NOT_FOUND;
		if (!made) {
			call_fail(c, &e);
			return;
		}
		t = (struct store_team){ .created_ns = fleet_now_ns() };
		snprintf(t.name, sizeof(t.name), "%s", call_param(c, 0));
	}
	take_quotas(c, &t);
	if (!teams_take_plan(c, &t) || !teams_take_isolation(c, &t))
		return;
	if (store_team_put(c->api->store, &t, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	quota_changed(c->api, t.name);
	call_audit_more(c, "team.put", t.name, "ok",
			json_pack("{s:o, s:s, s:s}", "own", limits_json(&t), "plan", t.plan,
				  "isolation", t.isolation));
	call_json(c, made ? 201 : 200, team_json(c->api, &t));
}

void teams_delete(struct call *c)
{
	struct err e;

	if (!teams_operates(c))
		return;
	if (store_team_remove(c->api->store, call_param(c, 0), &e) < 0) {
		call_fail(c, &e);
		return;
	}
	quota_changed(c->api, call_param(c, 0));
	auth_changed(c->api);
	call_empty(c, 204);
}

/* ---- network rules ---- */

const struct field teams_network_fields[] = {
	{ "allow", FIELD_TEXTS, 0, 0, RULES_MAX,
	  "destinations that boxes of the team may reach, as in network.allow of a box; not given: "
	  "all that the operator permits",
	  NULL },
	{ "deny", FIELD_TEXTS, 0, 0, RULES_MAX,
	  "destinations that they may not reach, whatever is allowed", NULL },
	{ 0 },
};

void teams_network_show(struct call *c)
{
	auto_free char *lines = NULL;
	struct store_team t;
	struct err e;

	if (!teams_find(c, call_param(c, 0), &t))
		return;
	if (store_network_rules_get(c->api->store, t.name, &lines, &e) < 0)
		call_fail(c, &e);
	else
		call_json(c, 200, box_network_team_json(lines));
}

void teams_network_put(struct call *c)
{
	auto_free char *lines = NULL;
	struct store_team t;
	struct box *last;
	struct err e;

	if (!teams_operates(c) || !teams_find(c, call_param(c, 0), &t))
		return;
	if (network_read_team_lines(c->body, &lines, &e) < 0 ||
	    store_network_rules_put(c->api->store, t.name, lines, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	last = egress_client_change_team(&c->api->fleet, t.name);
	call_audit_more(c, "team.network", t.name, "ok", box_network_team_json(lines));
	if (c->api->shared_row_left) /* the boxes are on other machines */
		call_shared(c, "network", t.name, 200, box_network_team_json(lines));
	else
		network_answer(c, last, 200, box_network_team_json(lines));
}

/* ---- usage ---- */

static json_t *day_json(int32_t day, const struct store_usage *u)
{
	time_t s = (time_t)day * 86400;
	char text[16];
	struct tm tm;

	gmtime_r(&s, &tm);
	strftime(text, sizeof(text), "%Y-%m-%d", &tm);
	return json_pack("{s:s, s:I, s:I, s:I, s:I}", "day", text, "executions",
			 (json_int_t)u->executions, "compute_ms", (json_int_t)u->compute_ms,
			 "output_bytes", (json_int_t)u->output_bytes, "boxes_created",
			 (json_int_t)u->boxes_created);
}

/* The team that the query names; 0: answered. */
static int usage_find_team(struct call *c, struct store_team *out)
{
	const char *team = call_query(c, "team");

	return teams_find(c, team ? team : c->who.team, out);
}

static void usage_show_days(struct call *c, const struct usage_answer *a)
{
	int32_t today = store_day(fleet_now_ns()), days = (int32_t)call_query_int(c, "days", 7);
	json_t *items, *doc;
	struct store_team t;

	if (!usage_find_team(c, &t))
		return;
	items = json_array();
	for (int32_t day = today; day > today - days; day--) {
		int32_t at = day - a->first_day;

		if (at >= 0 && at < USAGE_DAYS)
			json_array_append_new(items, day_json(day, &a->days[at]));
	}
	usage_add_costs(c, &a->rows, items);
	doc = teams_used_json(c, &t, a);
	json_object_set_new(doc, "days", items);
	call_json(c, 200, doc);
}

void usage_show(struct call *c)
{
	int32_t today = store_day(fleet_now_ns()), days = (int32_t)call_query_int(c, "days", 7);
	struct store_team t;

	if (usage_is_report(c))
		usage_report(c);
	else if (usage_find_team(c, &t))
		usage_ask(c,
			  &(struct store_usage_filter){ .team = t.name,
							.from_day = today - days + 1,
							.to_day = today,
							.by = STORE_BY_DAY },
			  1, usage_show_days);
}
