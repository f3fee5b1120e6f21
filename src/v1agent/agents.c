/* agents.c - see agents.h.
 *
 *   request -> [packages] -> agent session: its events -> report -> [the box has ended]
 *
 * When the client disconnects, the session ends, too: model calls cost money, and no client would
 * read their result. */
#include "v1agent/agents.h"
#include "document/document.h"
#include "agent/agent_session.h"
#include "v1box/automatic.h"
#include "v1box/boxes.h"
#include "api/event_stream.h"
#include "v1box/packages.h"
#include "api/page.h"
#include "api/quota.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "record/record.h"
#include "llm/llm.h"
#include "store/agents.h"

#include <stdio.h>
#include <string.h>

enum { FILES_MOST = 256, PATH_MOST = 400, WALL_MOST = 3600000, CONTEXT_MOST = 512 * 1024 };
enum { LOG_MOST = 256 * 1024 }; /* bytes of a log that are stored */
/* Between two keepalive events; the same when the client may have disconnected. */
enum { SILENCE_MS = 15000, LEFT_MS = 500 };

static const struct field budget_fields[] = {
	{ "max_calls", FIELD_INT, 0, 1, 1000,
	  "maximum number of model requests (default: twice max_steps)", NULL },
	{ "max_tokens", FIELD_INT, 0, 1, INT64_C(1) << 40,
	  "maximum number of input and output tokens together (default 200000)", NULL },
	{ "max_cost", FIELD_ANY, 0, 0, 0,
	  "maximum cost, in the currency of the models' prices (default: unlimited)", NULL },
	{ "max_wall_ms", FIELD_INT, 0, 1, WALL_MOST,
	  "time limit of the whole session (default 600000)", NULL },
	{ 0 },
};

const struct field agents_fields[] = {
	/* clang-format off */
	{ "task", FIELD_TEXT, 1, 1, AGENT_TASK_BYTES, "description of the task", NULL },
	{ "box", FIELD_TEXT, 0, 1, STORE_NAME, "a running box, by id or name, in which the agent works and which stays (default: a new box, which ends)", NULL },
	{ "files", FIELD_MAP, 0, 0, FILES_MOST, "files in the workspace: {path: text}", NULL },
	{ "role", FIELD_NAME, 0, 0, STORE_NAME, "role in the models file that selects the model (default agent)", NULL },
	{ "model", FIELD_NAME, 0, 0, STORE_NAME, "name of a model in the models file; has priority over role", NULL },
	{ "max_steps", FIELD_INT, 0, 1, AGENT_SESSION_STEPS_MOST, "maximum number of actions, including the last one (default 5)", NULL },
	{ "tools", FIELD_TEXTS, 0, 0, 16, "names of the tools that the agent may use (default: all five)", NULL },
	{ "budget", FIELD_OBJECT, 0, 0, 0, "limits of the session", budget_fields },
	{ "command_ms", FIELD_INT, 0, 1, 600000, "default time limit of a command (default 30000)", NULL },
	{ "context_bytes", FIELD_INT, 0, 1024, CONTEXT_MOST, "maximum size of the history in the prompt (default 65536)", NULL },
	{ "limits", FIELD_OBJECT, 0, 0, 0, "resource limits of the box: memory, cpu, ...", box_limit_fields },
	{ "env", FIELD_MAP, 0, 0, 1000, "environment variables of the box", NULL },
	ISOLATION_FIELDS,
	{ "packages", FIELD_ANY, 0, 0, 0, "packages to install: {\"pip\": [...], \"npm\": [...]}", NULL },
	{ "network", FIELD_OBJECT, 0, 0, 0, "hosts that the box may reach (default: none)", box_network_fields },
	{ "keep", FIELD_BOOL, 0, 0, 0, "do not end the box after the session", NULL },
#ifdef ATOLL_TEST
	{ "boxagent", FIELD_TEXTS, 0, 0, 3, "test builds: a hostile program instead of the boxagent", NULL },
#endif
	{ 0 },
	/* clang-format on */
};

const struct field agents_list_query[] = {
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)",
	  NULL },
	{ "after", FIELD_TEXT, 0, 0, STORE_CURSOR_TEXT, "`next` of the previous page", NULL },
	{ 0 },
};

struct session {
	struct session *next;
	struct agent_session_owner owner;
	char id[ID_MAX + 1]; /* of its row */
	struct call *call;
	struct agent_session *session;
	struct package_job packages;
	struct event_stream event_stream;
	int streaming;
	struct timer silence;
	json_t *log;      /* entries of the agent's log, for its row; NULL: none yet */
	size_t log_bytes; /* of the entries as text */
	int log_cut;      /* entries were left out: there were more than LOG_MOST */
};

/* ---- its row ---- */

static int insert_row(struct session *s, struct err *e)
{
	struct call *c = s->call;
	const char *task = call_text(c, "task", "");
	struct store_agent row = { .created_ns = fleet_now_ns() };
	size_t n = strcspn(task, "\n");

	if (id_new(row.id, e) < 0)
		return -1;
	n = n < sizeof(row.title) - 1 ? n : sizeof(row.title) - 1;
	n = utf8_cut(task, n);
	memcpy(row.title, task, n);
	snprintf(row.team, sizeof(row.team), "%s", c->who.team);
	snprintf(row.who, sizeof(row.who), "%s", c->who.id);
	if (store_agent_insert(c->api->store, &row, e) < 0)
		return -1;
	memcpy(s->id, row.id, sizeof(s->id));
	s->next = c->api->agents;
	c->api->agents = s;
	return 0;
}

static void agents_keep_log(struct session *s, const json_t *event)
{
	json_t *entry = json_object_get(event, "entry");
	size_t n = entry ? json_dumpb(entry, NULL, 0, JSON_COMPACT) : 0;

	if (!n || s->log_cut)
		return;
	if (s->log_bytes + n > LOG_MOST) {
		s->log_cut = 1;
		return;
	}
	s->log_bytes += n;
	if (!s->log)
		s->log = json_array();
	json_array_append(s->log, entry);
}

/* The stored report and log. NULL: neither exists. */
static char *agents_row_text(const struct session *s, const json_t *report)
{
	json_t *doc;
	char *text;

	if (!report && !s->log)
		return NULL;
	doc = report ? json_copy((json_t *)report) : json_object();
	if (s->log)
		json_object_set(doc, "log", s->log);
	if (s->log_cut)
		json_object_set_new(doc, "log_truncated", json_true());
	text = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	return text;
}

/* If the store is full, the client still gets the same answer. */
static void end_row(struct session *s, const char *outcome, const json_t *report)
{
	auto_free char *text = agents_row_text(s, report);
	struct err e;

	json_decref(s->log);
	s->log = NULL;
	if (!s->id[0])
		return;
	(void)!store_agent_end(s->call->api->store, s->id, fleet_now_ns(), outcome, text, &e);
	s->id[0] = '\0';
	for (struct session **at = &s->call->api->agents; *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			break;
		}
}

static int runs_here(const struct api *a, const char *id)
{
	const struct session *s = a->agents;

	while (s && strcmp(s->id, id) != 0)
		s = s->next;
	return s != NULL;
}

void agents_set_sole_server(struct api *a)
{
	struct store_agents rows = { 0 };
	struct err e;

	if (!a->fleet.alone || store_agent_running(a->store, &rows, &e) < 0)
		return;
	for (unsigned i = 0; i < rows.n; i++)
		if (!runs_here(a, rows.v[i].id))
			(void)!store_agent_end(a->store, rows.v[i].id, fleet_now_ns(), "lost", NULL,
					       &e);
	store_agents_fini(&rows);
}

/* Stops everything that belongs to the session. */
static void session_over(struct session *s)
{
	s->call->drop = NULL;
	timer_fini(&s->silence);
	packages_job_fini(&s->packages);
}

/* ---- events ---- */

static int agents_told(struct agent_session_owner *o, json_t *take_event)
{
	struct session *s = loop_owner(o, struct session, owner);

	agents_keep_log(s, take_event);
	if (s->streaming) {
		timer_set(&s->silence, SILENCE_MS);
		return event_stream_event(&s->event_stream, take_event);
	}
	json_decref(take_event);
	return 0;
}

static void agents_done(struct agent_session_owner *o, json_t *take_report)
{
	struct session *s = loop_owner(o, struct session, owner);
	struct call *c = s->call;
	json_t *packages = packages_report(&s->packages);

	s->session = NULL;
	if (packages)
		json_object_set_new(take_report, "packages", packages);
	json_object_set_new(take_report, "id", json_string(s->id));
	end_row(s, doc_text(take_report, "outcome"), take_report);
	call_audit_more(c, "agent.run", json_string_value(json_object_get(take_report, "box")),
			json_string_value(json_object_get(take_report, "outcome")),
			json_pack("{s:O, s:O, s:O}", "steps", json_object_get(take_report, "steps"),
				  "usage", json_object_get(take_report, "usage"), "why",
				  json_object_get(take_report, "why")));
	session_over(s);
	if (s->streaming) {
		json_object_set_new(take_report, "type", json_string("report"));
		event_stream_event(&s->event_stream, take_report);
		event_stream_end(&s->event_stream);
	} else {
		call_json(c, 200, take_report);
	}
}

static void agents_fail(struct session *s, int status, json_t *take_error)
{
	end_row(s, "refused", NULL);
	session_over(s);
	if (s->streaming) {
		json_object_set_new(take_error, "type", json_string("error"));
		event_stream_event(&s->event_stream, take_error);
		event_stream_end(&s->event_stream);
	} else {
		call_json(s->call, status, take_error);
	}
}

static void fail_err(struct session *s, const struct err *e)
{
	agents_fail(s, call_status(e),
		    call_error_json(s->call, err_kind_name(e->kind), e->msg, NULL, NULL));
}

/* ---- the client ---- */

static void agents_left(struct call *c)
{
	struct session *s = c->state;

	end_row(s, "cancelled", NULL);
	session_over(s);
	if (s->session) {
		agent_session_cancel(s->session);
		api_audit(c->api, &c->who, "agent.run", "", "cancelled", NULL);
		c->audited = 1;
	}
}

static void agents_drains(struct http_req *r)
{
	struct call *c = r->user;
	struct session *s = c->state;

	if (s && s->session)
		agent_session_resume(s->session);
}

/* A model may take long to answer, and proxies close idle connections. */
static void silence_due(struct timer *t)
{
	struct session *s = loop_owner(t, struct session, silence);

	timer_set(t, SILENCE_MS);
	event_stream_event(&s->event_stream, json_pack("{s:s}", "type", "keepalive"));
}

/* The client has closed its side, and may still be reading. If it has disconnected, the second
 * write after this one fails. A client without an event stream cannot be tested like this; its
 * session is ended, because model calls are expensive. */
static void may_have_left(struct http_req *r)
{
	struct call *c = r->user;
	struct session *s = c->state;

	if (!s || !c->drop)
		return;
	if (!s->streaming) {
		http_abort(r);
		return;
	}
	event_stream_event(&s->event_stream, json_pack("{s:s}", "type", "keepalive"));
	timer_set(&s->silence, LEFT_MS);
}

/* ---- start ---- */

static void agents_begin(struct session *s)
{
	struct call *c = s->call;
	struct box_spec box;
	struct agent_session_want want = { .box = &box,
					   .in_box = call_get(c, "box") ? c->held : NULL,
					   .key = c->who.id,
					   .before = &c->before,
					   .order = c->body,
					   .keep = call_flag(c, "keep", 0) };
	struct err e;

	if (!want.in_box) {
		if (box_spec_read(c, &box, &e) < 0) {
			fail_err(s, &e);
			return;
		}
		packages_want(&s->packages, c->req, &box);
	}
	if (agent_session_start(&c->api->fleet, c->api->model, &want, &s->owner, &s->session, &e) <
	    0)
		fail_err(s, &e);
}

static void agents_installed(struct package_job *j, const struct packages_failure *f)
{
	struct session *s = j->user;

	if (f)
		agents_fail(s, 422, packages_failure_json(f));
	else
		agents_begin(s);
}

static void install_said(struct package_job *j, const char *manager, unsigned stream,
			 const char *bytes, size_t n)
{
	struct session *s = j->user;

	if (s->streaming)
		event_stream_event(&s->event_stream, packages_said_json(manager, stream, bytes, n));
}

static int check_files(const json_t *files, struct err *e)
{
	const char *path;
	json_t *v;

	json_object_foreach(
		(json_t *)files, path,
		v) if (!*path ||
		       strlen(path) >
			       PATH_MOST) return err_set(e, ERR_INVALID,
							 "files: a path of %zu bytes, from 1 to %d",
							 strlen(path), PATH_MOST);
	return 0;
}

static int agents_check(struct call *c, struct err *e)
{
	const json_t *cost = json_object_get(call_get(c, "budget"), "max_cost");
	unsigned tools;

	if (!*call_text(c, "task", ""))
		return err_set(e, ERR_INVALID, "task: is empty");
	if (cost && !json_is_null(cost) && (!json_is_number(cost) || json_number_value(cost) <= 0))
		return err_set(e, ERR_INVALID, "budget.max_cost: must be a number above 0");
	return check_files(call_get(c, "files"), e) < 0 ||
			       agent_session_tools(call_get(c, "tools"), &tools, e) < 0
		       ? -1
		       : 0;
}

/* 0: no model can drive the agent, and that was answered. */
static int agents_have_model(struct call *c)
{
	const json_t *roles = llm_roles(c->api->model);
	const char *role = call_text(c, "role", "agent");

	if (!c->api->model) {
		call_error(
			c, 503, "no_model", "no model is configured",
			"an agent needs one to tell it what to do",
			"name a models file (serve.models) with a [role] agent; docs/pipeline.md has one");
		return 0;
	}
	/* If the roles are not known yet, the request is accepted: the first model call waits for
	 * them. */
	if (roles && !call_text(c, "model", NULL) && !json_object_get(roles, role)) {
		call_error(c, 409, "no_model", "no model has this role", role,
			   "add it to [role] of the models file, or name a model");
		return 0;
	}
	return 1;
}

static void agents_start(struct call *c);

/* What an existing box has already. */
static int agents_check_in_box(struct call *c, struct err *e)
{
	static const char *const of_new[] = { "limits",   "env",     "isolation", "trust",
					      "packages", "network", "keep" };

	for (unsigned i = 0; i < ARRAY_LEN(of_new); i++)
		if (call_get(c, of_new[i]))
			return err_set(e, ERR_INVALID,
				       "%s: is for a new box, and box names an existing one",
				       of_new[i]);
	return 0;
}

/* 1: agents_start() is called, or the request was answered. */
static int agents_enter_box(struct call *c)
{
	struct box *b;
	struct err e;

	if (agents_check_in_box(c, &e) < 0) {
		call_fail(c, &e);
		return 1;
	}
	b = call_box_of_body(c);
	if (!b)
		return 1;
	call_hold(c, b);
	box_wake(b);
	return automatic_before(c, b, CHECKPOINT_STEP_EXEC, agents_start);
}

void agents_run(struct call *c)
{
	struct err e;

	if (agents_check(c, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (!agents_have_model(c))
		return;
	if (call_get(c, "box") ? agents_enter_box(c) : !quota_box(c))
		return;
	agents_start(c);
}

static void agents_start(struct call *c)
{
	struct session *s;
	enum event_stream_kind kind = event_stream_wanted(c);
	struct err e;
	int there;

	if (!quota_run(c))
		return;
	s = call_alloc(c, sizeof(*s));
	*s = (struct session){
		.call = c,
		.owner = { .event = agents_told, .done = agents_done },
		.packages = { .api = c->api, .done = agents_installed, .said = install_said }
	};
	s->packages.user = s;
	c->state = s;
	c->drop = agents_left;
	c->req->on_drain = agents_drains;
	c->req->on_eof = may_have_left;
	timer_init(&s->silence, c->api->loop, silence_due);
	if (insert_row(s, &e) < 0) {
		fail_err(s, &e);
		return;
	}
	there = packages_read(&s->packages, call_get(c, "packages"), NULL, &e) < 0
			? -1
			: packages_begin(&s->packages, c->api, c->who.team, &e);
	if (there < 0) {
		json_t *refusal = packages_refusal_json(&e);

		if (refusal)
			agents_fail(s, 422, refusal);
		else
			fail_err(s, &e);
		return;
	}
	if (kind != EVENT_STREAM_NONE) {
		event_stream_begin(&s->event_stream, c->req, kind);
		s->streaming = 1;
		timer_set(&s->silence, SILENCE_MS);
	}
	if (there)
		agents_begin(s);
}

/* ---- finished agents ---- */

static json_t *row_json(const struct store_agent *x)
{
	json_t *doc = json_pack("{s:s, s:s, s:s, s:s, s:o}", "id", x->id, "task", x->title, "who",
				x->who, "state", x->ended_ns ? "finished" : "running", "created_at",
				json_time((uint64_t)x->created_ns));

	if (x->ended_ns) {
		json_object_set_new(doc, "ended_at", json_time((uint64_t)x->ended_ns));
		json_object_set_new(doc, "outcome", json_string(x->outcome));
	}
	return doc;
}

void agents_list(struct call *c)
{
	struct store_agents rows = { 0 };
	struct page page;
	json_t *items;
	struct err e;

	if (page_read(&page, c, &e) < 0 ||
	    store_agent_list(c->api->store, c->who.team, page.after, page.limit, &rows, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	items = json_array();
	for (unsigned i = 0; i < rows.n; i++)
		json_array_append_new(items, row_json(&rows.v[i]));
	if (rows.more)
		page_ends(&page, rows.v[rows.n - 1].created_ns, rows.v[rows.n - 1].id);
	store_agents_fini(&rows);
	call_list(c, items, page.next);
}

static void agents_move(json_t *from, json_t *to, const char *member)
{
	json_t *v = json_object_get(from, member);

	if (v) {
		json_object_set(to, member, v);
		json_object_del(from, member);
	}
}

void agents_show(struct call *c)
{
	auto_free char *text = NULL;
	struct store_agent row;
	json_t *doc, *report;
	struct err e;

	if (store_agent_get(c->api->store, c->who.team, call_param(c, 0), &row, &text, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	doc = row_json(&row);
	report = text && *text ? json_loads(text, 0, NULL) : NULL;
	agents_move(report, doc, "log");
	agents_move(report, doc, "log_truncated");
	if (json_object_size(report))
		json_object_set(doc, "report", report);
	json_decref(report);
	call_json(c, 200, doc);
}
