/* schedules.c - see schedules.h. schedules_json.c makes the answers. */
#include "v1ops/schedules.h"
#include "api/page.h"
#include "base/cleanup.h"
#include "schedule/zone.h"
#include "v1ops/schedule_runs.h"
#include "v1ops/schedules_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_S INT64_C(1000000000)
enum { OPERATOR_LEAST_S = CRON_EVERY_LEAST_S, LEAST_S = 60, NEXT_MOST = 100 };

static const struct field overlap_values[] = {
	FIELD_VALUE("skip"), FIELD_VALUE("queue"), FIELD_VALUE("replace"), { 0 }
};
static const struct field catch_up_values[] = {
	FIELD_VALUE("none"), FIELD_VALUE("one"), FIELD_VALUE("all"), { 0 }
};
/* clang-format off */
#define SETTING_FIELDS                                                                             \
	{ "tz", FIELD_TEXT, 0, 1, STORE_ZONE, "time zone, for example Europe/Berlin (default UTC)", NULL }, \
	{ "run", FIELD_ANY, 0, 0, 0, "what it starts: the body of POST /v1/run", NULL },           \
	{ "batch", FIELD_ANY, 0, 0, 0, "or the body of POST /v1/batch with items", NULL },         \
	{ "pipeline", FIELD_ANY, 0, 0, 0, "or the body of POST /v1/pipelines", NULL },             \
	{ "overlap", FIELD_CHOICE, 0, 0, 0, "a tick during the run before it: skip (default), queue or replace", overlap_values }, \
	{ "catch_up", FIELD_CHOICE, 0, 0, 0, "ticks that no server could start: none, one (default: the last one) or all", catch_up_values }, \
	{ "catch_up_max", FIELD_INT, 0, 1, CATCH_UP_MAX, "all: at most so many of them (default 10)", NULL }, \
	{ "jitter_ms", FIELD_INT, 0, 0, SCHEDULE_JITTER_MAX_MS, "start up to so much later, by a number that belongs to the tick", NULL }, \
	{ "retries", FIELD_INT, 0, 0, SCHEDULE_RETRIES_MAX, "further attempts of a tick that failed (default 0)", NULL }, \
	{ "retry_ms", FIELD_INT, 0, 1, SCHEDULE_RETRY_MAX_MS, "pause before the first of them (default 10 s), doubled each time", NULL }, \
	{ "timeout_ms", FIELD_INT, 0, 0, UINT32_MAX, "time limit of one attempt; 0: that of the request", NULL }
const struct field schedules_create_fields[] = {
	{ "name", FIELD_NAME, 1, 0, STORE_NAME, "name, unique in the team", NULL },
	{ "cron", FIELD_TEXT, 1, 1, CRON_TEXT, "when: 0 6 * * 1-5, @daily, every 15m, at 2026-12-01T06:00, once", NULL },
	SETTING_FIELDS,
	{ "paused", FIELD_BOOL, 0, 0, 0, "create it paused", NULL },
	{ 0 },
};
const struct field schedules_patch_fields[] = {
	{ "name", FIELD_NAME, 0, 0, STORE_NAME, "name, unique in the team", NULL },
	{ "cron", FIELD_TEXT, 0, 1, CRON_TEXT, "when: 0 6 * * 1-5, @daily, every 15m, at 2026-12-01T06:00, once", NULL },
	SETTING_FIELDS,
	{ 0 },
};
/* clang-format on */
const struct field schedules_list_query[] = {
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)",
	  NULL },
	{ "after", FIELD_TEXT, 0, 0, STORE_CURSOR_TEXT, "`next` of the previous page", NULL },
	{ 0 },
};
const struct field schedules_ticks_query[] = {
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)",
	  NULL },
	{ "after", FIELD_TEXT, 0, 0, 24, "`next` of the previous page", NULL },
	{ 0 },
};
const struct field schedules_next_query[] = {
	{ "cron", FIELD_TEXT, 1, 1, CRON_TEXT, "an expression", NULL },
	{ "tz", FIELD_TEXT, 0, 1, STORE_ZONE, "time zone (default UTC)", NULL },
	{ "n", FIELD_INT, 0, 1, NEXT_MOST, "number of times (default 5)", NULL },
	{ 0 },
};

static struct schedules *schedules_engine(const struct call *c)
{
	return schedule_runs_engine(c->api->schedules);
}

/* 0: the team has no such schedule, and that was answered. */
static int schedules_own(struct call *c, struct store_schedule *out)
{
	struct err e;

	if (store_schedule_get(c->api->store, c->who.team, call_param(c, 0), out, &e) == 0)
		return 1;
	if (e.kind == ERR_NOT_FOUND)
		call_error(c, 404, "not_found", "there is no such schedule", call_param(c, 0),
			   "list them: GET /v1/schedules");
	else
		call_fail(c, &e);
	return 0;
}

/* ---- reading a request ---- */

/* What it starts; a request without it keeps what the schedule has. */
static int schedules_read_request(struct call *c, struct store_schedule *x, struct err *e)
{
	unsigned found = 0;

	for (unsigned i = 0; i < SCHEDULE_KINDS; i++) {
		const char *name = store_schedule_kind_name((enum store_schedule_kind)i);
		json_t *body = call_get(c, name);

		if (!body)
			continue;
		if (found++)
			return err_set(e, ERR_INVALID, "exactly one of run, batch and pipeline");
		if (!json_is_object(body))
			return err_set(e, ERR_INVALID, "%s: must be an object", name);
		if (!schedule_runs_check((enum store_schedule_kind)i, body, e))
			return -1;
		x->kind = (enum store_schedule_kind)i;
		free(x->request);
		x->request = json_dumps(body, JSON_COMPACT);
	}
	if (!x->request)
		return err_set(
			e, ERR_INVALID,
			"nothing to start: give run, batch or pipeline, the body of such a request");
	return 0;
}

static int schedules_read_settings(struct call *c, struct store_schedule *x, struct err *e)
{
	struct schedule_settings settings;
	json_t *had = x->settings ? json_loads(x->settings, 0, NULL) : NULL, *doc;
	int rc;

	schedule_settings_default(&settings);
	rc = schedule_settings_read(&settings, had, e) < 0 ||
	     schedule_settings_read(&settings, c->body, e) < 0;
	json_decref(had);
	if (rc)
		return -1;
	doc = schedule_settings_json(&settings);
	free(x->settings);
	x->settings = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	return 0;
}

static int schedules_check_times(struct call *c, const struct cron *cron, const struct zone *z,
				 int64_t now_ns, const char *text, struct err *e)
{
	int64_t least = principal_is_operator(&c->who) ? OPERATOR_LEAST_S : LEAST_S, next;

	if (cron->kind == CRON_EVERY && cron->every_s < least)
		return err_set(
			e, ERR_INVALID,
			"cron: '%.40s' is too often; type every 1m, or ask an operator of the daemon",
			text);
	if (cron->kind == CRON_AT && !schedule_preview(cron, z, now_ns, now_ns, &next, 1))
		return err_set(e, ERR_INVALID, "cron: '%.40s' is in the past (time zone %s)", text,
			       zone_name(z));
	return 0;
}

/* The expression and its zone. A changed one counts from now on. */
static int schedules_read_times(struct call *c, struct store_schedule *x, int64_t now_ns,
				struct err *e)
{
	const char *text = call_text(c, "cron", NULL), *tz = call_text(c, "tz", NULL);
	struct zone *z = NULL;
	struct cron cron;
	int rc;

	if (!text && !tz)
		return 0;
	if (text)
		snprintf(x->expression, sizeof(x->expression), "%s", text);
	if (tz || !x->zone[0])
		snprintf(x->zone, sizeof(x->zone), "%s", tz ? tz : "UTC");
	if (cron_parse(&cron, x->expression, e) < 0)
		return err_in(e, "cron");
	if (zone_load(&z, x->zone, e) < 0)
		return err_in(e, "tz");
	rc = schedules_check_times(c, &cron, z, now_ns, x->expression, e);
	zone_free(z);
	x->anchor_ns = now_ns - now_ns % NS_S;
	/* "once" is due at the anchor itself. */
	x->decided_ns = cron.kind == CRON_ONCE ? x->anchor_ns - NS_S : x->anchor_ns;
	if (x->state == SCHEDULE_ENDED) {
		x->state = SCHEDULE_ACTIVE;
		x->reason[0] = 0;
	}
	return rc;
}

static void schedules_set_principal(const struct call *c, struct store_schedule *x)
{
	snprintf(x->who, sizeof(x->who), "%s", c->who.id);
	snprintf(x->key, sizeof(x->key), "%.*s", ID_MAX, c->who.has_hash ? c->who.id : "");
	x->role = c->who.role;
}

/* ---- create, change ---- */

/* The row was written: the engine reads it, and the client gets it. Takes the texts of x. */
static void schedules_answer(struct call *c, int status, struct store_schedule *take_x)
{
	struct err e;
	json_t *doc = NULL;
	int rc = schedules_changed(schedules_engine(c), take_x->id, &e);

	store_schedule_fini(take_x);
	if (rc == 0)
		rc = store_schedule_by_id(c->api->store, take_x->id, take_x, &e);
	if (rc == 0) {
		doc = schedules_json(c->api, take_x, 1); /* the caller is an editor */
		store_schedule_fini(take_x);
	}
	if (doc)
		call_json(c, status, doc);
	else
		call_fail(c, &e);
}

static void schedules_refuse(struct call *c, struct store_schedule *take_x, const struct err *e)
{
	store_schedule_fini(take_x);
	if (e->kind == ERR_INVALID)
		call_error(
			c, 400, "invalid", e->msg, NULL,
			"GET /v1/schedules/next?cron=...&tz=... shows the times of an expression");
	else
		call_fail(c, e);
}

static int schedules_check_name(const char *name, struct err *e)
{
	return strcmp(name, "next") ? 0
				    : err_set(e, ERR_INVALID, "name: 'next' is a path of the API");
}

void v1_schedules_create(struct call *c)
{
	struct store_schedule x = { .created_ns = fleet_now_ns() };
	uint64_t has = 0;
	struct err e;

	x.updated_ns = x.created_ns;
	x.state = call_flag(c, "paused", 0) ? SCHEDULE_PAUSED : SCHEDULE_ACTIVE;
	snprintf(x.reason, sizeof(x.reason), "%s",
		 x.state == SCHEDULE_PAUSED ? "it was created paused" : "");
	snprintf(x.team, sizeof(x.team), "%s", c->who.team);
	snprintf(x.name, sizeof(x.name), "%s", call_text(c, "name", ""));
	schedules_set_principal(c, &x);
	if (id_new(x.id, &e) < 0 || schedules_check_name(x.name, &e) < 0 ||
	    schedules_read_times(c, &x, x.created_ns, &e) < 0 ||
	    schedules_read_request(c, &x, &e) < 0 || schedules_read_settings(c, &x, &e) < 0 ||
	    store_schedule_count(c->api->store, x.team, &has, &e) < 0 ||
	    (has >= SCHEDULES_OF_TEAM &&
	     err_set(&e, ERR_LIMIT, "the team has %d schedules, the maximum", SCHEDULES_OF_TEAM)) ||
	    store_schedule_add(c->api->store, &x, &e) < 0) {
		schedules_refuse(c, &x, &e);
		return;
	}
	call_audit(c, "schedule.create", x.id, "ok");
	schedules_answer(c, 201, &x);
}

void v1_schedules_patch(struct call *c)
{
	struct store_schedule x;
	struct err e;

	if (!schedules_own(c, &x))
		return;
	x.updated_ns = fleet_now_ns();
	if (call_text(c, "name", NULL))
		snprintf(x.name, sizeof(x.name), "%s", call_text(c, "name", ""));
	schedules_set_principal(c, &x); /* it runs as the principal that described it last */
	if (schedules_check_name(x.name, &e) < 0 ||
	    schedules_read_times(c, &x, x.updated_ns, &e) < 0 ||
	    schedules_read_request(c, &x, &e) < 0 || schedules_read_settings(c, &x, &e) < 0 ||
	    store_schedule_put(c->api->store, &x, &e) < 0) {
		schedules_refuse(c, &x, &e);
		return;
	}
	schedules_answer(c, 200, &x);
}

void v1_schedules_pause(struct call *c)
{
	struct store_schedule x;
	char why[STORE_REASON + 1];
	struct err e;

	if (!schedules_own(c, &x))
		return;
	snprintf(why, sizeof(why), "paused by %s", c->who.id);
	if (store_schedule_set_state(c->api->store, x.id, SCHEDULE_PAUSED, why, fleet_now_ns(),
				     &e) < 0)
		schedules_refuse(c, &x, &e);
	else
		schedules_answer(c, 200, &x);
}

/* Ticks from the time of the pause are not made up for. */
void v1_schedules_resume(struct call *c)
{
	struct store_schedule x;
	struct err e;

	if (!schedules_own(c, &x))
		return;
	if (x.state == SCHEDULE_ENDED) {
		store_schedule_fini(&x);
		call_error(c, 409, "conflict", "this schedule has no more times", call_param(c, 0),
			   "PATCH it with another cron, or start it once: POST .../run");
		return;
	}
	if (x.state == SCHEDULE_PAUSED) {
		x.updated_ns = fleet_now_ns();
		x.decided_ns = x.updated_ns > x.decided_ns ? x.updated_ns : x.decided_ns;
		x.state = SCHEDULE_ACTIVE;
		x.reason[0] = 0;
		schedules_set_principal(c, &x);
		if (store_schedule_put(c->api->store, &x, &e) < 0) {
			schedules_refuse(c, &x, &e);
			return;
		}
	}
	schedules_answer(c, 200, &x);
}

void v1_schedules_delete(struct call *c)
{
	struct store_schedule x;
	struct err e;
	int rc;

	if (!schedules_own(c, &x))
		return;
	rc = store_schedule_remove(c->api->store, x.id, &e);
	if (rc == 0)
		rc = schedules_changed(schedules_engine(c), x.id, &e);
	store_schedule_fini(&x);
	if (rc < 0)
		call_fail(c, &e);
	else
		call_empty(c, 204);
}

void v1_schedules_run(struct call *c)
{
	struct store_schedule x;
	struct store_tick t;
	struct err e;

	if (!schedules_own(c, &x))
		return;
	if (schedules_run_now(schedules_engine(c), x.id, &t, &e) < 0)
		call_fail(c, &e);
	else
		call_json(c, 202, schedules_tick_json(&x, &t));
	store_schedule_fini(&x);
}

/* ---- show ---- */

void v1_schedules_show(struct call *c)
{
	struct store_schedule x;

	if (!schedules_own(c, &x))
		return;
	/* The request may have variables that are not for viewers. */
	call_json(c, 200, schedules_json(c->api, &x, c->who.role >= ROLE_EDITOR));
	store_schedule_fini(&x);
}

void v1_schedules_list(struct call *c)
{
	struct store_schedules rows = { 0 };
	struct page page;
	json_t *items;
	struct err e;

	if (page_read(&page, c, &e) < 0 ||
	    store_schedule_list(c->api->store, c->who.team, page.after, page.limit, &rows, &e) <
		    0) {
		call_fail(c, &e);
		return;
	}
	items = json_array();
	for (unsigned i = 0; i < rows.n; i++)
		json_array_append_new(items, schedules_json(c->api, &rows.v[i], 0));
	if (rows.more)
		page_ends(&page, rows.v[rows.n - 1].created_ns, rows.v[rows.n - 1].id);
	store_schedules_fini(&rows);
	call_list(c, items, page.next);
}

void v1_schedules_ticks(struct call *c)
{
	const char *after = call_query(c, "after");
	struct store_schedule x;
	struct store_ticks rows;
	char next[24] = "";
	json_t *items;
	struct err e;

	if (after &&
	    (!*after || strspn(after, "0123456789") != strlen(after) || strlen(after) > 19)) {
		call_error(c, 400, "invalid", "after: must be `next` of the previous page", after,
			   NULL);
		return;
	}
	if (!schedules_own(c, &x))
		return;
	if (store_tick_list(c->api->store, x.id, after ? strtoll(after, NULL, 10) : 0,
			    (unsigned)call_query_int(c, "limit", 0), &rows, &e) < 0) {
		store_schedule_fini(&x);
		call_fail(c, &e);
		return;
	}
	items = json_array();
	for (unsigned i = 0; i < rows.n; i++)
		json_array_append_new(items, schedules_tick_json(&x, &rows.v[i]));
	if (rows.more)
		snprintf(next, sizeof(next), "%lld", (long long)rows.v[rows.n - 1].at_ns);
	store_ticks_fini(&rows);
	store_schedule_fini(&x);
	call_list(c, items, next);
}

void v1_schedules_next(struct call *c)
{
	const char *text = call_query(c, "cron"), *tz = call_query(c, "tz");
	int64_t times[NEXT_MOST], now = fleet_now_ns();
	unsigned n = (unsigned)call_query_int(c, "n", SCHEDULES_SHOWN);
	char words[CRON_WORDS];
	struct zone *z = NULL;
	struct cron cron;
	struct err e;

	if ((cron_parse(&cron, text ? text : "", &e) < 0 && err_in(&e, "cron")) ||
	    (zone_load(&z, tz ? tz : "UTC", &e) < 0 && err_in(&e, "tz"))) {
		call_error(c, 400, "invalid", e.msg, NULL, NULL);
		return;
	}
	cron_words(&cron, words);
	n = schedule_preview(&cron, z, now, cron.kind == CRON_ONCE ? now - NS_S : now, times, n);
	call_json(c, 200,
		  json_pack("{s:s, s:s, s:s, s:o}", "cron", text, "tz", zone_name(z), "words",
			    words, "next", schedules_times_json(z, times, n)));
	zone_free(z);
}
