/* schedule_runs.c - see schedule_runs.h. */
#include "v1ops/schedule_runs.h"
#include "api/fields.h"
#include "api/internal_call.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fleet/box.h"
#include "fleet/exec.h"
#include "pipeline/pipeline.h"
#include "record/record.h"
#include "store/batches.h"
#include "store/runs.h"
#include "v1agent/pipelines.h"
#include "v1run/batch.h"
#include "v1run/run_request.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct schedule_request {
	struct schedule_request *next;
	struct schedule_runs *all;
	struct internal_call *call;
	enum store_schedule_kind kind;
	struct store_tick tick;
};

struct schedule_runs {
	struct api *api;
	struct schedules *engine;
	struct schedule_request *requests; /* not answered yet */
};

static const struct {
	const char *path;
	const struct field *fields; /* NULL: the handler checks them */
} schedule_routes[SCHEDULE_KINDS] = {
	[SCHEDULE_RUN] = { "/v1/run", run_request_fields },
	[SCHEDULE_BATCH] = { "/v1/batch", batch_body_fields },
	[SCHEDULE_PIPELINE] = { "/v1/pipelines", pipelines_fields },
};

int schedule_runs_check(enum store_schedule_kind kind, json_t *body, struct err *e)
{
	const char *name = store_schedule_kind_name(kind);

	if (fields_check(body, schedule_routes[kind].fields, name, e) < 0)
		return 0;
	fields_prune(body, schedule_routes[kind].fields);
	if (kind == SCHEDULE_RUN && !json_object_get(body, "command") &&
	    !json_object_get(body, "code") && !json_object_get(body, "entry"))
		return err_set(e, ERR_INVALID, "run: needs command, code or entry"), 0;
	if (kind == SCHEDULE_RUN && json_is_true(json_object_get(body, "background")))
		return err_set(e, ERR_INVALID, "run.background: a schedule waits for the end"), 0;
	if (kind == SCHEDULE_RUN && json_is_true(json_object_get(body, "reuse")))
		return err_set(e, ERR_INVALID,
			       "run.reuse: each tick of a schedule is a run of its own"),
		       0;
	return 1;
}

/* ---- what became of it ---- */

static enum schedule_found runs_find_run(struct api *a, const char *id, char why[STORE_REASON + 1],
					 struct err *e)
{
	struct store_run row = { 0 };
	int well, ended;

	run_writer_flush(&a->fleet.run_writer);
	if (store_run_get(a->store, id, &row, e) < 0)
		return e->kind == ERR_NOT_FOUND ? FOUND_NOTHING : FOUND_RUNNING;
	ended = row.ended_ns != 0;
	well = !strcmp(row.cause, "exit") && row.status == 0;
	if (!strcmp(row.cause, "exit"))
		snprintf(why, STORE_REASON + 1, "exit status %d", row.status);
	else
		snprintf(why, STORE_REASON + 1, "%s", row.cause);
	store_run_fini(&row);
	return !ended ? FOUND_RUNNING : well ? FOUND_SUCCEEDED : FOUND_FAILED;
}

static enum schedule_found runs_find_batch(struct api *a, const char *id,
					   char why[STORE_REASON + 1], struct err *e)
{
	struct store_batch row = { 0 };
	enum schedule_found found;

	if (store_batch_get(a->store, id, &row, e) < 0)
		return e->kind == ERR_NOT_FOUND ? FOUND_NOTHING : FOUND_RUNNING;
	found = !row.ended_ns ? FOUND_RUNNING
		: row.state == STORE_BATCH_FINISHED && row.whole && !row.failed && !row.errors
			? FOUND_SUCCEEDED
			: FOUND_FAILED;
	if (row.state == STORE_BATCH_CANCELLED || !row.whole)
		snprintf(why, STORE_REASON + 1, "the batch was cancelled");
	else
		snprintf(why, STORE_REASON + 1, "%llu of %llu items failed",
			 (unsigned long long)(row.failed + row.errors),
			 (unsigned long long)row.items);
	store_batch_fini(&row);
	return found;
}

static enum schedule_found runs_find_pipeline(struct api *a, const char *id,
					      char why[STORE_REASON + 1], struct err *e)
{
	static const enum pipelines_outcome well[] = { OUTCOME_VERIFIED, OUTCOME_EXAMPLES_PASS,
						       OUTCOME_PLAUSIBLE };
	struct store_pipeline row;

	if (store_pipeline_get(a->store, id, &row, e) < 0)
		return e->kind == ERR_NOT_FOUND ? FOUND_NOTHING : FOUND_RUNNING;
	if (!row.ended_ns)
		return FOUND_RUNNING;
	for (unsigned i = 0; i < ARRAY_LEN(well); i++)
		if (!strcmp(row.outcome, pipeline_outcome_name(well[i])))
			return FOUND_SUCCEEDED;
	snprintf(why, STORE_REASON + 1, "the outcome of the pipeline is %s", row.outcome);
	return FOUND_FAILED;
}

static enum schedule_found runs_find(void *ctx, const struct store_schedule *s,
				     const struct store_tick *t, char why[STORE_REASON + 1])
{
	struct schedule_runs *x = ctx;
	struct err e;

	return s->kind == SCHEDULE_RUN     ? runs_find_run(x->api, t->run, why, &e)
	       : s->kind == SCHEDULE_BATCH ? runs_find_batch(x->api, t->run, why, &e)
					   : runs_find_pipeline(x->api, t->run, why, &e);
}

/* ---- starting ---- */

static void request_run(struct call *c, void *user)
{
	const struct schedule_request *q = user;

	if (q->kind == SCHEDULE_RUN)
		run_request_detach(c, &(struct run_request_spec){ .body = c->body,
								  .run_id = q->tick.run });
	else if (q->kind == SCHEDULE_BATCH)
		batch_submit(c, q->tick.run);
	else
		pipelines_submit(c, q->tick.run);
}

static void request_free(struct schedule_request *q)
{
	struct schedule_request **at = &q->all->requests;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	free(q);
}

/* A record without the program itself: a step before it has failed. */
static void request_failed_early(struct schedule_request *q, const json_t *doc)
{
	const char *id = json_string_value(json_object_get(doc, "id")),
		   *cause = json_string_value(json_object_get(doc, "cause"));
	char why[STORE_REASON + 1];

	snprintf(why, sizeof(why), "a step before the program failed: %.60s, status %lld",
		 cause ? cause : "unknown",
		 (long long)json_integer_value(json_object_get(doc, "status")));
	schedules_refused(q->all->engine, &q->tick, id && id_valid(id) ? id : "", why);
}

static void request_answered(void *user, int status, const json_t *doc)
{
	struct schedule_request *q = user;
	const json_t *error = json_object_get(doc, "error");
	const char *message = json_string_value(json_object_get(error, "message")),
		   *why = json_string_value(json_object_get(error, "why"));
	char text[STORE_REASON + 1], unused[STORE_REASON + 1];
	struct err e;

	if (status >= 400) {
		snprintf(text, sizeof(text), "%.160s%s%.60s", message ? message : "refused",
			 why && *why ? ": " : "", why ? why : "");
		schedules_refused(q->all->engine, &q->tick, "", text);
	} else if (q->kind == SCHEDULE_RUN &&
		   runs_find_run(q->all->api, q->tick.run, unused, &e) == FOUND_NOTHING) {
		request_failed_early(q, doc);
	} else {
		schedules_look(q->all->engine, q->tick.run);
	}
	request_free(q);
}

/* The schedule's own values, where the request has none. */
static json_t *request_body(const struct store_schedule *s)
{
	json_t *body = json_loads(s->request, 0, NULL),
	       *settings = json_loads(s->settings, 0, NULL);
	json_int_t timeout = json_integer_value(json_object_get(settings, "timeout_ms"));

	if (!body)
		body = json_object();
	if (s->kind == SCHEDULE_RUN && !json_object_get(body, "tag"))
		json_object_set_new(body, "tag", json_string(s->name));
	if (s->kind == SCHEDULE_RUN && timeout && !json_object_get(body, "timeout_ms"))
		json_object_set_new(body, "timeout_ms", json_integer(timeout));
	json_decref(settings);
	return body;
}

static struct principal runs_principal(const struct store_schedule *s)
{
	struct principal who = { .role = s->role };

	snprintf(who.id, sizeof(who.id), "%s", s->who);
	snprintf(who.team, sizeof(who.team), "%s", s->team);
	return who;
}

static void runs_start(void *ctx, const struct store_schedule *s, const struct store_tick *t)
{
	struct schedule_runs *x = ctx;
	struct schedule_request *q = calloc(1, sizeof(*q));
	const struct principal who = runs_principal(s);

	if (!q)
		abort();
	q->all = x;
	q->kind = s->kind;
	q->tick = *t;
	q->next = x->requests;
	x->requests = q;
	q->call = internal_call_begin(
		&(struct internal_call_spec){ .api = x->api,
					      .who = &who,
					      .method = "POST",
					      .path = schedule_routes[s->kind].path,
					      .run = request_run,
					      .answered = request_answered,
					      .user = q },
		request_body(s));
}

static void runs_stop(void *ctx, const struct store_schedule *s, const struct store_tick *t)
{
	struct schedule_runs *x = ctx;
	struct store_run row = { 0 };
	struct box *b;
	struct exec *r;
	struct err e;

	if (s->kind == SCHEDULE_PIPELINE) {
		(void)!pipeline_cancel(x->api->pipelines, s->team, t->run, &e);
	} else if (s->kind == SCHEDULE_BATCH) {
		batch_end_by_id(x->api, s->team, t->run);
	} else if (store_run_get(x->api->store, t->run, &row, &e) == 0) {
		b = row.ended_ns ? NULL : fleet_find(&x->api->fleet, row.box);
		r = b ? exec_lookup(b, row.id) : NULL;
		if (r)
			exec_send_signal(r, SIGKILL);
		store_run_fini(&row);
	}
}

static int runs_may(void *ctx, const struct store_schedule *s, struct err *e)
{
	struct schedule_runs *x = ctx;
	struct store_team team;
	struct store_key key;

	if (store_team_get(x->api->store, s->team, &team, e) < 0)
		return e->kind == ERR_NOT_FOUND
			       ? (err_set(e, ERR_DENIED, "team %s was deleted", s->team), 0)
			       : 1; /* the store fails: so will the start, with its own error */
	if (!s->key[0])
		return 1;
	if (store_key_get(x->api->store, s->key, &key, e) < 0)
		return e->kind == ERR_NOT_FOUND
			       ? (err_set(e, ERR_DENIED,
					  "key %s, which created it, was deleted; resume it with another key",
					  s->key),
				  0)
			       : 1;
	if (key.revoked || (key.expires_ns && key.expires_ns <= fleet_now_ns()))
		return err_set(e, ERR_DENIED,
			       "key %s, which created it, %s; resume it with another key", s->key,
			       key.revoked ? "was revoked" : "has expired"),
		       0;
	if (key.role < ROLE_EDITOR)
		return err_set(e, ERR_DENIED, "key %s no longer has the role editor", s->key), 0;
	return 1;
}

static int64_t runs_now_ns(void *ctx)
{
	(void)ctx;
	return fleet_now_ns();
}

static void runs_emit(void *ctx, const char *type, const struct store_schedule *s,
		      const struct store_tick *t)
{
	struct schedule_runs *x = ctx;
	json_t *data = json_pack("{s:s, s:s}", "schedule", s->id, "name", s->name);

	if (t) {
		json_object_set_new(data, "at", json_time((uint64_t)t->at_ns));
		json_object_set_new(data, "kind", json_string(store_schedule_kind_name(s->kind)));
		if (t->run[0])
			json_object_set_new(data, "run", json_string(t->run));
		if (t->count)
			json_object_set_new(data, "count", json_integer((json_int_t)t->count));
		if (t->detail[0])
			json_object_set_new(data, "detail", json_string(t->detail));
	} else {
		json_object_set_new(data, "detail", json_string(s->reason));
		log_info(type, LOG_S("schedule", s->id), LOG_S("name", s->name),
			 LOG_S("why", s->reason));
	}
	fleet_emit(&x->api->fleet, s->team, "", type, data);
}

/* ---- life ---- */

struct schedule_runs *schedule_runs_new(struct api *a)
{
	struct schedule_runs *x = calloc(1, sizeof(*x));
	const struct schedule_runner runner = { .ctx = x,
						.now_ns = runs_now_ns,
						.start = runs_start,
						.find = runs_find,
						.stop = runs_stop,
						.may = runs_may,
						.emit = runs_emit };

	if (!x)
		abort();
	x->api = a;
	x->engine = schedules_new(a->loop, a->store, &runner);
	return x;
}

struct schedules *schedule_runs_engine(const struct schedule_runs *x)
{
	return x->engine;
}

static void runs_drop_requests(struct schedule_runs *x)
{
	while (x->requests) {
		internal_call_drop(x->requests->call);
		request_free(x->requests);
	}
}

void schedule_runs_alone(struct schedule_runs *x)
{
	struct err e;

	if (!x->api->fleet.alone || x->api->http.draining) {
		schedules_end(x->engine);
		runs_drop_requests(x);
	} else if (schedules_begin(x->engine, &e) < 0) {
		log_error("schedules do not run", LOG_S("error", e.msg));
	}
}

void schedule_runs_free(struct schedule_runs *x)
{
	if (!x)
		return;
	schedules_end(x->engine);
	runs_drop_requests(x);
	schedules_free(x->engine);
	free(x);
}
