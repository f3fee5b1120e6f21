/* pipelines.c - see pipelines.h.
 *
 * Nothing here drives a pipeline: its state is in the store, pipeline/pipeline.c advances it, and
 * clients that follow it read the store. So a client can disconnect and reconnect, to this server
 * or to the next one. */
#include "v1agent/pipelines.h"
#include "document/document.h"
#include "pipeline/pipeline.h"
#include "execute/scan.h"
#include "api/event_stream.h"
#include "api/charges.h"
#include "api/idempotency.h"
#include "api/isolation.h"
#include "api/page.h"
#include "v1agent/pipelines_follow.h"
#include "api/quota.h"
#include "base/cleanup.h"
#include "record/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CATEGORIES = 100 };

#define ANY(name, help)                                                                            \
	{                                                                                          \
		name, FIELD_ANY, 0, 0, 0, help, NULL                                               \
	}
const struct field pipelines_fields[] = {
	{ "task", FIELD_TEXT, 1, 1, AGENT_TASK_BYTES, "description of the task", NULL },
	ANY("language", "python, javascript, ...; else the task's words tell"),
	ANY("files", "{path: text}: existing code"),
	ANY("entry", "the file that is begun with"),
	ANY("stdin", "the program's input"),
	ANY("examples", "[{input, expected} or {call, expected}]"),
	ANY("tests", "[{path, content, command?}]"),
	ANY("packages", "{manager: [name]}"),
	ANY("mode", "auto, heuristic or llm"),
	ANY("race", "so many artifacts at once, 1 to 4"),
	{ "box", FIELD_TEXT, 0, 1, STORE_NAME,
	  "a running box, by id or name: each program runs in a copy of its files, and the box "
	  "stays as it is",
	  NULL },
	ANY("remember", "false: nothing is learned of it"),
	ANY("limits", "{run_ms, install_ms, memory}"),
	ANY("network", "boxes of a pipeline have no network access: only false"),
	ANY("budget", "{max_attempts, max_tokens, max_cost, max_calls, max_wall_ms}"),
	ANY("answers", "{name: text}, to questions that are known before"),
	ISOLATION_FIELDS,
	{ 0 },
};
const struct field pipelines_post_query[] = {
	{ "wait", FIELD_BOOL, 0, 0, 0, "wait and answer with the report", NULL },
	{ 0 },
};
const struct field pipelines_list_query[] = {
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)",
	  NULL },
	{ "after", FIELD_TEXT, 0, 0, STORE_CURSOR_TEXT, "`next` of the previous page", NULL },
	{ "outcome", FIELD_NAME, 0, 0, STORE_WORD, "only pipelines with this outcome", NULL },
	{ 0 },
};
const struct field pipelines_show_query[] = {
	{ "documents", FIELD_BOOL, 0, 0, 0, "false: omit the documents", NULL },
	{ "wait", FIELD_BOOL, 0, 0, 0, "wait until the report exists and answer with it", NULL },
	{ 0 },
};
const struct field pipelines_events_query[] = {
	{ "after", FIELD_INT, 0, 0, UINT32_MAX - 2, "events after this number (default 0)", NULL },
	{ "follow", FIELD_BOOL, 0, 0, 0, "continue until the pipeline has ended", NULL },
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)",
	  NULL },
	{ 0 },
};
const struct field pipelines_answer_fields[] = {
	{ "name", FIELD_TEXT, 0, 0, 400, "name of the question (default: the current question)",
	  NULL },
	{ "text", FIELD_TEXT, 1, 0, 1 << 20, "text of the answer", NULL },
	{ 0 },
};
const struct field pipelines_unlearn_fields[] = { { 0 } };
static const struct field scan_policy_values[] = {
	FIELD_VALUE("block"), FIELD_VALUE("warn"), FIELD_VALUE("off"), { 0 }
};
const struct field pipelines_policy_fields[] = {
	/* clang-format off */
	{ "scan", FIELD_CHOICE, 0, 0, 0, "block: apply the action of each rule; warn: run all programs; off: do not scan", scan_policy_values },
	{ "memory", FIELD_BOOL, 0, 0, 0, "false: store no lessons of the team's pipelines and use none", NULL },
	{ 0 },
	/* clang-format on */
};
const struct field pipelines_replay_fields[] = {
	{ "attempt", FIELD_INT, 0, 1, 1000, "number of the attempt (default: the last one)", NULL },
	{ 0 },
};

/* ---- as JSON ---- */

json_t *pipelines_usage_json(const struct store_pipeline *p)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:f}", "calls", (json_int_t)p->calls, "in",
			 (json_int_t)p->tokens_in, "out", (json_int_t)p->tokens_out, "cache_read",
			 (json_int_t)p->cache_read, "cost", (double)p->cost_micro / 1e6);
}

json_t *pipelines_row_json(struct api *a, const struct store_pipeline *p)
{
	static const char *const stages[STORE_STAGES] = { "planner", "coder", "executor",
							  "debugger" };
	int64_t until = p->ended_ns ? p->ended_ns : fleet_now_ns();
	json_t *ms = json_object(),
	       *doc = json_pack("{s:s, s:s, s:s, s:s, s:I, s:o, s:f, s:o}", "id", p->id, "state",
				store_pipeline_state_name(p->state), "task", p->title, "who",
				p->who, "attempts", (json_int_t)p->attempts, "created_at",
				json_time((uint64_t)p->created_ns), "ms",
				(double)(until - p->created_ns) / 1e6, "usage",
				pipelines_usage_json(p));

	if (p->ended_ns)
		json_object_set_new(doc, "ended_at", json_time((uint64_t)p->ended_ns));
	if (p->outcome[0])
		json_object_set_new(doc, "outcome", json_string(p->outcome));
	if (p->category[0])
		json_object_set_new(doc, "category", json_string(p->category));
	for (unsigned i = 0; i < STORE_STAGES; i++)
		json_object_set_new(ms, stages[i], json_real((double)p->us[i] / 1000));
	json_object_set_new(doc, "stage_ms", ms);
	json_object_set_new(doc, "cost", charges_total_json(a, p->id));
	return doc;
}

json_t *pipelines_accepted(const char *id, const char *state)
{
	return json_pack("{s:s, s:s, s:s+}", "id", id, "state", state, "url", "/v1/pipelines/", id);
}

json_t *pipelines_doc(struct api *a, const char *id, const char *kind, uint32_t attempt)
{
	struct store_doc row;
	struct err e;
	json_t *doc;

	if (store_doc_last(a->store, id, kind, attempt, &row, &e) < 0)
		return NULL;
	doc = json_loads(row.json, 0, NULL);
	store_doc_fini(&row);
	return doc;
}

int pipelines_own(struct call *c, struct store_pipeline *row)
{
	struct err e;

	if (id_valid(call_param(c, 0)) &&
	    store_pipeline_get(c->api->store, call_param(c, 0), row, &e) == 0 &&
	    !strcmp(row->team, c->who.team))
		return 1;
	call_error(c, 404, "not_found", "there is no such pipeline", call_param(c, 0),
		   "list them: GET /v1/pipelines");
	return 0;
}

/* ---- create ---- */

static int also_key(void *ctx, const char *id, struct err *e)
{
	return idempotency_subject(ctx, id, e);
}

static void answer_new(struct call *c, const char *id, struct idem *take_idem)
{
	json_t *doc;

	if (event_stream_wanted(c) != EVENT_STREAM_NONE) {
		idempotency_leave(take_idem); /* a repeated request follows the same pipeline */
		follow_stream(c, id, 0, 1, 0);
		return;
	}
	if (call_query_flag(c, "wait")) {
		idempotency_leave(take_idem);
		follow_wait(c, id);
		return;
	}
	doc = pipelines_accepted(id, "running");
	idempotency_answer(take_idem, 202, doc);
	http_set(c->req, "Location", "/v1/pipelines/%s", id);
	call_json(c, 202, doc);
}

/* 0: the task is rejected, and that was answered. */
static int pipelines_check_task(struct call *c)
{
	struct choose_request isolation;
	struct err e;

	if (!isolation_check_call(c, 0, &isolation))
		return 0;
	if (task_check(c->body, &e) < 0) {
		call_error(c, e.kind == ERR_LIMIT ? 413 : 400, "invalid", e.msg, NULL, NULL);
		return 0;
	}
	if (json_is_true(json_object_get(c->body, "network"))) {
		call_error(
			c, 400, "invalid", "network: boxes of a pipeline have no network access",
			NULL,
			"packages are installed all the same; for the rest make a box: POST /v1/boxes");
		return 0;
	}
	return !call_get(c, "box") || call_box_of_body(c);
}

void pipelines_submit(struct call *c, const char *id)
{
	char own[ID_MAX + 1];
	struct err e;

	if (!pipelines_check_task(c))
		return;
	snprintf(own, sizeof(own), "%s", id);
	if (pipeline_start(c->api->pipelines, c->who.team, c->who.id, c->body, NULL, NULL, own,
			   &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_audit(c, "pipeline.create", own, "ok");
	call_json(c, 202, pipelines_accepted(own, "running"));
}

void pipelines_post(struct call *c)
{
	char id[ID_MAX + 1] = "";
	struct idem *idem;
	enum idempotency_result go;
	struct err e;

	if (!pipelines_check_task(c))
		return;
	go = idempotency_begin(c, &idem, id);
	if (go == IDEM_ANSWERED)
		return;
	if (go == IDEM_GO && pipeline_start(c->api->pipelines, c->who.team, c->who.id, c->body,
					    also_key, idem, id, &e) < 0) {
		idempotency_drop(idem);
		if (e.kind == ERR_LIMIT)
			http_set(c->req, "Retry-After", "10");
		call_fail(c, &e);
		return;
	}
	call_audit(c, "pipeline.create", id, "ok");
	answer_new(c, id, idem);
}

/* ---- list, show ---- */

void pipelines_list(struct call *c)
{
	struct store_pipelines rows = { 0 };
	struct page page;
	json_t *items;
	struct err e;

	if (page_read(&page, c, &e) < 0 ||
	    store_pipeline_list(c->api->store, c->who.team, call_query(c, "outcome"), page.after,
				page.limit, &rows, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	items = json_array();
	for (unsigned i = 0; i < rows.n; i++)
		json_array_append_new(items, pipelines_row_json(c->api, &rows.v[i]));
	if (rows.more)
		page_ends(&page, rows.v[rows.n - 1].created_ns, rows.v[rows.n - 1].id);
	store_pipelines_fini(&rows);
	call_list(c, items, page.next);
}

static json_t *docs_json(const struct store_docs *docs)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < docs->n; i++) {
		json_t *doc = json_loads(docs->v[i].json, 0, NULL);

		json_array_append_new(all,
				      json_pack("{s:I, s:s, s:I, s:o}", "seq",
						(json_int_t)docs->v[i].seq, "kind", docs->v[i].kind,
						"attempt", (json_int_t)docs->v[i].attempt,
						"document", doc ? doc : json_null()));
	}
	return all;
}

void pipelines_show(struct call *c)
{
	struct store_pipeline row;
	struct store_docs docs;
	struct err e;
	json_t *doc;

	if (!pipelines_own(c, &row))
		return;
	if (call_query_flag(c, "wait")) {
		follow_wait(c, row.id);
		return;
	}
	doc = pipelines_row_json(c->api, &row);
	if (row.state == STORE_PIPELINE_WAITING)
		json_object_set_new(doc, "question", pipelines_doc(c->api, row.id, "question", 0));
	if (!call_query(c, "documents") || call_query_flag(c, "documents")) {
		if (store_doc_list(c->api->store, row.id, &docs, &e) < 0) {
			json_decref(doc);
			call_fail(c, &e);
			return;
		}
		json_object_set_new(doc, "documents", docs_json(&docs));
		store_docs_fini(&docs);
	}
	call_json(c, 200, doc);
}

static void send_page(struct call *c, const char *id, uint32_t after)
{
	struct store_docs rows;
	json_t *items;
	char next[16] = "";
	struct err e;

	if (store_pipeline_events(c->api->store, id, after, (unsigned)call_query_int(c, "limit", 0),
				  &rows, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	items = json_array();
	for (unsigned i = 0; i < rows.n; i++) {
		json_t *event = json_loads(rows.v[i].json, 0, NULL);

		if (event)
			json_array_append_new(items, event);
	}
	if (rows.more)
		snprintf(next, sizeof(next), "%u", rows.v[rows.n - 1].seq);
	store_docs_fini(&rows);
	call_list(c, items, next);
}

void pipelines_events(struct call *c)
{
	const char *last = http_header(c->req, "last-event-id");
	int64_t after = call_query_int(c, "after", 0);
	struct store_pipeline row;

	if (!pipelines_own(c, &row))
		return;
	if (last && *last && strspn(last, "0123456789") == strlen(last) && strlen(last) < 10)
		after = strtoll(last, NULL, 10);
	if (call_query_flag(c, "follow") || event_stream_wanted(c) != EVENT_STREAM_NONE)
		follow_stream(c, row.id, (uint32_t)after, 0,
			      row.state == STORE_PIPELINE_FINISHED ||
				      (call_query(c, "follow") && !call_query_flag(c, "follow")));
	else
		send_page(c, row.id, (uint32_t)after);
}

/* ---- change ---- */

static void show_row(struct call *c, const char *id)
{
	struct store_pipeline row;
	struct err e;

	if (store_pipeline_get(c->api->store, id, &row, &e) < 0)
		call_fail(c, &e);
	else
		call_json(c, 200, pipelines_row_json(c->api, &row));
}

void pipelines_answer(struct call *c)
{
	struct err e;

	if (pipeline_answer(c->api->pipelines, c->who.team, call_param(c, 0),
			    call_text(c, "name", ""), call_text(c, "text", ""), &e) < 0)
		call_fail(c, &e);
	else
		show_row(c, call_param(c, 0));
}

void pipelines_cancel(struct call *c)
{
	struct err e;

	if (pipeline_cancel(c->api->pipelines, c->who.team, call_param(c, 0), &e) < 0)
		call_fail(c, &e);
	else
		show_row(c, call_param(c, 0));
}

void pipelines_delete(struct call *c)
{
	struct err e;

	if (pipeline_forget(c->api->pipelines, c->who.team, call_param(c, 0), &e) < 0)
		call_fail(c, &e);
	else
		call_empty(c, 204);
}

void pipelines_unlearn(struct call *c)
{
	struct err e;

	if (store_lesson_forget(c->api->store, c->who.team, &e) < 0)
		call_fail(c, &e);
	else
		call_empty(c, 204);
}

/* ---- policy of the team ---- */

static json_t *pipelines_policy_json(const struct store_policy *p)
{
	return json_pack("{s:s, s:b}", "scan", p->scan[0] ? p->scan : "block", "memory",
			 !p->forgetful);
}

void pipelines_policy(struct call *c)
{
	struct store_policy policy;
	struct err e;

	if (store_policy_get(c->api->store, c->who.team, &policy, &e) < 0)
		call_fail(c, &e);
	else
		call_json(c, 200, pipelines_policy_json(&policy));
}

void pipelines_set_policy(struct call *c)
{
	const char *scan = call_text(c, "scan", NULL);
	struct store_policy policy;
	json_t *none = json_array();
	struct err e;
	int known = scan_apply(none, scan) >= 0;

	json_decref(none);
	if (!known) {
		call_error(c, 400, "invalid", "there is no such policy for scan results", scan,
			   "block, warn or off");
		return;
	}
	if (store_policy_get(c->api->store, c->who.team, &policy, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (scan)
		snprintf(policy.scan, sizeof(policy.scan), "%s", scan);
	policy.forgetful = !call_flag(c, "memory", !policy.forgetful);
	if (store_policy_put(c->api->store, c->who.team, &policy, &e) < 0)
		call_fail(c, &e);
	else
		call_shared(c, "policy", c->who.team, 200, pipelines_policy_json(&policy));
}

/* ---- figures ---- */

static json_t *pipelines_ratio(uint64_t a, uint64_t b)
{
	return b ? json_real((double)a / (double)b) : json_null();
}

static json_t *tally_json(struct call *c, const char *by)
{
	struct store_tally rows[CATEGORIES];
	json_t *all = json_object();
	struct err e;
	int n = store_pipeline_tally(c->api->store, c->who.team, by, rows, CATEGORIES, &e);

	for (int i = 0; i < n; i++)
		json_object_set_new(all, rows[i].name, json_integer((json_int_t)rows[i].n));
	return all;
}

void pipelines_metrics(struct call *c)
{
	struct store_pipeline_sums s;
	struct err e;

	if (store_pipeline_sums(c->api->store, c->who.team, &s, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_json(
		c, 200,
		json_pack(
			"{s:I, s:o, s:o, s:o, s:o, s:{s:o, s:o, s:o, s:o}, s:o, s:o, s:o, s:{s:I, s:I, "
			"s:I, s:I, s:f}}",
			"runs", (json_int_t)s.runs, "success_rate",
			pipelines_ratio(s.success, s.runs), "attempts_per_success",
			pipelines_ratio(s.success_attempts, s.success), "outcomes",
			tally_json(c, "outcome"), "categories", tally_json(c, "category"),
			"stage_ms", "planner", pipelines_ratio(s.us[0], s.runs * 1000), "coder",
			pipelines_ratio(s.us[1], s.runs * 1000), "executor",
			pipelines_ratio(s.us[2], s.runs * 1000), "debugger",
			pipelines_ratio(s.us[3], s.runs * 1000), "cost_per_success",
			pipelines_ratio(s.success_cost_micro, s.success * 1000000),
			"cache_hit_ratio", pipelines_ratio(s.cache_read, s.tokens_in),
			"overfit_rate", pipelines_ratio(s.overfit, s.runs), "usage", "calls",
			(json_int_t)s.calls, "in", (json_int_t)s.tokens_in, "out",
			(json_int_t)s.tokens_out, "cache_read", (json_int_t)s.cache_read, "cost",
			(double)s.cost_micro / 1e6));
}

int pipelines_routes_init(struct api *a, struct err *e)
{
	struct pipelines_conf conf = { .keep_ms = a->conf.pipeline_keep_ms,
				       .forgetful = a->conf.pipeline_forgetful,
				       .line = a->model,
				       .checkpoints = a->checkpoints };

	return pipelines_new(&a->pipelines, &a->fleet, &conf, e);
}
