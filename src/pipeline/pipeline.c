/* pipeline.c - see pipeline.h: the list of pipelines, their execution and their watchers. */
#include "pipeline/pipeline.h"
#include "pipeline/pipeline_internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "fleet/charge.h"
#include "base/utf8.h"
#include "store/agents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An agent session has an hour at most; one that has not ended by then was lost. */
#define AGENTS_LOST_NS (INT64_C(2) * 3600 * 1000000000)
enum { TICK_MS = 30000, FIRST_TICK_MS = 1000, WRITE_AGAIN_MS = 1000, WALL_MS = 600000 };

static const char *const outcomes[OUTCOME_COUNT] = {
	[OUTCOME_VERIFIED] = "verified",   [OUTCOME_EXAMPLES_PASS] = "examples_pass",
	[OUTCOME_PLAUSIBLE] = "plausible", [OUTCOME_NOT_UNDERSTOOD] = "not_understood",
	[OUTCOME_FAILED] = "failed",       [OUTCOME_NEEDS_INPUT] = "needs_input",
	[OUTCOME_CANCELLED] = "cancelled",
};

const char *pipeline_outcome_name(enum pipelines_outcome o)
{
	return o < OUTCOME_COUNT ? outcomes[o] : "failed";
}

static uint64_t now_us(void)
{
	return now_ns() / 1000;
}

/* ---- watchers ---- */

void pipeline_notify(struct pipelines *a, const char *id)
{
	for (struct pipeline_watch *w = a->watches, *next; w; w = next) {
		next = w->next;
		if (!strcmp(w->id, id))
			w->news(w);
	}
}

void pipeline_watch(struct pipelines *a, const char *id, struct pipeline_watch *w)
{
	w->all = a;
	snprintf(w->id, sizeof(w->id), "%s", id);
	w->next = a->watches;
	a->watches = w;
}

void pipeline_unwatch(struct pipeline_watch *w)
{
	struct pipeline_watch **at;

	if (!w->all)
		return;
	for (at = &w->all->watches; *at != w; at = &(*at)->next)
		;
	*at = w->next;
	w->all = NULL;
}

/* ---- memory ---- */

static void come_due(struct timer *t);
static void wall_due(struct timer *t);

static struct pipeline *pipeline_enter(struct pipelines *a, const struct store_pipeline *row)
{
	struct pipeline *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->all = a;
	p->row = *row;
	p->held = -1;
	p->before = json_array();
	p->candidates = json_array();
	p->seen = json_object();
	timer_init(&p->go, a->fleet->loop, come_due);
	timer_init(&p->wall, a->fleet->loop, wall_due);
	p->next = a->first;
	a->first = p;
	return p;
}

static void pipeline_leave(struct pipeline *p)
{
	struct pipeline **at = &p->all->first;
	json_t *docs[] = { p->task,      p->plan,     p->artifact, p->result,
			   p->diagnosis, p->repaired, p->question, p->candidates,
			   p->before,    p->seen,     p->unwritten };

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	stage_stop(p);
	timer_fini(&p->go);
	timer_fini(&p->wall);
	for (unsigned i = 0; i < ARRAY_LEN(docs); i++)
		json_decref(docs[i]);
	free(p);
}

static struct pipeline *pipeline_find(const struct pipelines *a, const char *id)
{
	struct pipeline *p = a->first;

	while (p && strcmp(p->row.id, id) != 0)
		p = p->next;
	return p;
}

/* ---- storing ---- */

static void pipeline_log(const struct pipeline *p, const char *outcome)
{
	char line[160];

	snprintf(line, sizeof(line), "[pipeline %s] [%s] [attempt %u/%u] %.60s", p->row.id,
		 p->stage ? p->stage : "orchestrator", p->attempt ? p->attempt : 1, p->most,
		 outcome);
	log_info(line, LOG_S("team", p->row.team));
}

/* Its state is computed again from the stored documents. */
static void pipeline_reload(struct pipeline *p);

static void try_store(struct pipeline *p)
{
	json_t *doc = p->unwritten;
	struct pipelines *a = p->all;
	struct err e;

	if (journal_add(p, p->unwritten_kind, doc, p->unwritten_outcome, &e) < 0) {
		if (e.kind == ERR_CONFLICT ||
		    e.kind == ERR_NOT_FOUND) { /* another server executes it, or none */
			log_warn("a pipeline is no longer ours", LOG_S("pipeline", p->row.id),
				 LOG_E(&e));
			pipeline_leave(p);
			return;
		}
		log_error("a pipeline cannot be written", LOG_S("pipeline", p->row.id), LOG_E(&e));
		pipeline_reload(p);
		timer_set(&p->go, WRITE_AGAIN_MS);
		return;
	}
	p->unwritten = NULL;
	json_decref(doc);
	pipeline_notify(a, p->row.id);
	if (!pipeline_stops(p, "after"))
		timer_set(&p->go, 0);
}

void pipeline_store(struct pipeline *p, const char *kind, json_t *take_doc, const char *outcome)
{
	if (pipeline_stops(p, "inside")) {
		json_decref(take_doc);
		return;
	}
	p->unwritten = take_doc;
	p->unwritten_kind = kind;
	p->unwritten_outcome = outcome;
	pipeline_log(p, outcome);
	try_store(p);
}

/* In test builds the answer "test-stop": "planner:before" stops a pipeline there until the server
 * is killed. Only once: not in a pipeline that was taken over. */
int pipeline_stops(struct pipeline *p, const char *point)
{
#ifdef ATOLL_TEST
	const char *wanted = doc_text(json_object_get(p->task, "answers"), "test-stop");
	char here[64];

	snprintf(here, sizeof(here), "%s:%s", p->stage ? p->stage : "", point);
	if (!p->resumed && !p->stopped && !strcmp(wanted, here)) {
		p->stopped = 1;
		log_info("stopped for a test", LOG_S("pipeline", p->row.id), LOG_S("at", here));
	}
#else
	(void)point;
#endif
	return p->stopped;
}

/* ---- money ---- */

static uint64_t pipeline_member(const json_t *usage, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(usage, name));

	return n > 0 ? (uint64_t)n : 0;
}

void pipeline_add_usage(struct pipeline *p, const json_t *usage)
{
	double cost = json_number_value(json_object_get(usage, "cost"));

	p->row.calls += pipeline_member(usage, "calls");
	p->row.tokens_in += pipeline_member(usage, "in");
	p->row.tokens_out += pipeline_member(usage, "out");
	p->row.cache_read += pipeline_member(usage, "cache_read");
	p->row.cost_micro += cost > 0 ? (uint64_t)(cost * 1e6) : 0;
	charge_tokens(p->all->fleet, p->row.team, p->row.who, p->row.id, usage);
}

json_t *pipeline_usage(const struct pipeline *p)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:f}", "calls", (json_int_t)p->row.calls, "in",
			 (json_int_t)p->row.tokens_in, "out", (json_int_t)p->row.tokens_out,
			 "cache_read", (json_int_t)p->row.cache_read, "cost",
			 (double)p->row.cost_micro / 1e6);
}

/* ---- driving ---- */

static void set_wall(struct pipeline *p)
{
	json_int_t ms = json_integer_value(
		json_object_get(json_object_get(p->task, "budget"), "max_wall_ms"));
	int64_t gone = (fleet_now_ns() - p->began_ns) / 1000000;

	ms = ms > 0 ? ms : WALL_MS;
	timer_set(&p->wall, gone < ms ? (uint64_t)(ms - gone) : 0);
}

static void come_due(struct timer *t)
{
	struct pipeline *p = loop_owner(t, struct pipeline, go);
	struct trace_context before;

	if (p->unwritten) {
		try_store(p);
		return;
	}
	if (p->step == NEXT_WAIT || p->step == NEXT_OVER) {
		pipeline_leave(p); /* callers find it in the store */
		return;
	}
	if (!p->all->serving || !p->all->fleet->alone)
		return; /* not executed by this server, or not yet */
	if (!timer_pending(&p->wall))
		set_wall(p);
	p->stage_began_us = now_us();
	trace_child(&p->stage_trace, &p->trace);
	before = trace_enter(&p->stage_trace);
	stage_begin(p);
	trace_leave(&before);
}

static void wall_due(struct timer *t)
{
	struct pipeline *p = loop_owner(t, struct pipeline, wall);

	if (p->unwritten || p->step == NEXT_OVER || p->step == NEXT_WAIT)
		return;
	stage_late(p, "it had no more time (budget.max_wall_ms)");
}

static void read_docs(struct pipeline *p, const struct store_docs *docs)
{
	for (unsigned i = 0; i < docs->n; i++) {
		json_t *doc = json_loads(docs->v[i].json, 0, NULL);

		if (doc)
			pipeline_apply(p, docs->v[i].kind, doc);
		p->seq = docs->v[i].seq;
		if (!strcmp(docs->v[i].kind, "task") || !strcmp(docs->v[i].kind, "answer"))
			p->began_ns = docs->v[i].created_ns;
		json_decref(doc);
	}
}

/* NULL: it cannot be read; the next request tries again. */
static struct pipeline *take_up(struct pipelines *a, const struct store_pipeline *row,
				struct err *e)
{
	struct pipeline *p = pipeline_enter(a, row);
	struct store_docs docs;

	p->resumed = 1;
	if (store_pipeline_event_last(a->fleet->store, row->id, &p->event, e) < 0 ||
	    store_doc_list(a->fleet->store, row->id, &docs, e) < 0) {
		pipeline_leave(p);
		return NULL;
	}
	read_docs(p, &docs);
	store_docs_fini(&docs);
	p->row = *row; /* its counters are included already */
	return p;
}

static void pipeline_reload(struct pipeline *p)
{
	struct store_docs docs;
	struct store_pipeline row = p->row;
	struct err e;

	if (store_doc_list(p->all->fleet->store, row.id, &docs, &e) < 0)
		return;
	pipeline_reset(p);
	read_docs(p, &docs);
	store_docs_fini(&docs);
	p->row = row;
}

static void take_all_up(struct pipelines *a)
{
	struct store_pipelines rows;
	struct err e;

	if (store_pipeline_live(a->fleet->store, &rows, &e) < 0) {
		log_error("pipelines cannot be read", LOG_E(&e));
		return;
	}
	for (unsigned i = 0; i < rows.n; i++) {
		struct pipeline *p = pipeline_find(a, rows.v[i].id);

		if (rows.v[i].state != STORE_PIPELINE_RUNNING)
			continue;
		if (!p)
			p = take_up(a, &rows.v[i], &e);
		if (!p)
			continue;
		if (p->resumed) {
			pipeline_log(p, "resumed");
			pipeline_event(p, "resumed", json_object());
		}
		timer_set(&p->go, 0);
	}
	store_pipelines_fini(&rows);
}

void pipelines_alone(struct pipelines *a)
{
	a->serving = 1;
	if (a->fleet->alone) {
		take_all_up(a);
		return;
	}
	/* The next server continues with the stored documents. */
	for (struct pipeline *p = a->first, *next; p; p = next) {
		next = p->next;
		pipeline_leave(p);
	}
}

static void remove_all(struct pipelines *a, struct store_pipelines *rows)
{
	struct err e;

	for (unsigned i = 0; i < rows->n; i++)
		(void)!store_pipeline_remove(a->fleet->store, rows->v[i].id,
					     &e); /* the next sweep tries again */
	store_pipelines_fini(rows);
}

static void pipeline_purge_team(struct pipelines *a, const char *team)
{
	uint64_t keep = fleet_keep_ms(a->fleet, team, FLEET_KEEP_OUTPUTS, a->conf.keep_ms);
	int64_t before = fleet_now_ns() - (int64_t)(keep * 1000000);
	struct store_pipelines rows;
	struct err e;

	if (keep && store_pipeline_old(a->fleet->store, team, before, &rows, &e) == 0)
		remove_all(a, &rows);
}

static void pipeline_purge(struct timer *t)
{
	struct pipelines *a = loop_owner(t, struct pipelines, tick);
	int64_t before = fleet_now_ns() - (int64_t)(a->conf.keep_ms * 1000000);
	char team[STORE_NAME + 1] = "";
	struct store_pipelines rows;
	struct err e;

	timer_set(t, a->fleet->alone ? TICK_MS : FIRST_TICK_MS);
	if (!a->fleet->alone)
		return;
	while (store_pipeline_next_team(a->fleet->store, team, team, &e) > 0)
		pipeline_purge_team(a, team);
	if (store_pipeline_surplus(a->fleet->store, PIPELINES_KEPT_TEAM, &rows, &e) == 0)
		remove_all(a, &rows);
	(void)!store_agent_purge(a->fleet->store, a->conf.keep_ms ? before : 0,
				 fleet_now_ns() - AGENTS_LOST_NS, PIPELINES_KEPT_TEAM, &e);
}

int pipelines_new(struct pipelines **out, struct fleet *f, const struct pipelines_conf *conf,
		  struct err *e)
{
	struct pipelines *a = calloc(1, sizeof(*a));

	(void)e;
	if (!a)
		abort();
	a->fleet = f;
	a->conf = *conf;
	timer_init(&a->tick, f->loop, pipeline_purge);
	timer_set(&a->tick, FIRST_TICK_MS);
	*out = a;
	return 0;
}

void pipelines_free(struct pipelines *a)
{
	if (!a)
		return;
	while (a->first)
		pipeline_leave(a->first);
	while (a->watches)
		pipeline_unwatch(a->watches);
	timer_fini(&a->tick);
	free(a);
}

const struct pipelines_figures *pipelines_figures(const struct pipelines *a)
{
	struct pipelines_figures *f = &((struct pipelines *)a)->figures;

	f->live = 0;
	for (const struct pipeline *p = a->first; p; p = p->next)
		f->live++;
	return f;
}

/* ---- beginning, answering, ending ---- */

static unsigned live_of(const struct pipelines *a, const char *team)
{
	unsigned n = 0;

	for (const struct pipeline *p = a->first; p; p = p->next)
		n += !strcmp(p->row.team, team);
	return n;
}

static void set_title(struct store_pipeline *row, const char *task)
{
	size_t n = strcspn(task, "\n");

	n = n < sizeof(row->title) - 1 ? n : sizeof(row->title) - 1;
	n = utf8_cut(task, n);
	memcpy(row->title, task, n);
	row->title[n] = 0;
}

int pipeline_start(struct pipelines *a, const char *team, const char *who, const json_t *task,
		   int (*also)(void *ctx, const char *id, struct err *e), void *ctx,
		   char id[ID_MAX + 1], struct err *e)
{
	struct store_pipeline row = { .created_ns = fleet_now_ns() };
	struct pipeline *p;
	json_t *doc;
	int done;

	if (fleet_check_accepts(a->fleet, e) < 0)
		return -1;
	if (pipelines_figures(a)->live >= PIPELINES_LIVE)
		return err_set(e, ERR_LIMIT, "%d pipelines are in progress already",
			       PIPELINES_LIVE);
	if (live_of(a, team) >= PIPELINES_LIVE_TEAM)
		return err_set(e, ERR_LIMIT, "%d pipelines of this team are in progress already",
			       PIPELINES_LIVE_TEAM);
	if (id[0])
		memcpy(row.id, id, sizeof(row.id));
	else if (id_new(row.id, e) < 0)
		return -1;
	snprintf(row.team, sizeof(row.team), "%s", team);
	snprintf(row.who, sizeof(row.who), "%s", who);
	set_title(&row, doc_text(task, "task"));
	p = pipeline_enter(a, &row);
	p->began_ns = row.created_ns;
	trace_child(&p->trace, trace_current());
	doc = json_copy((json_t *)task);
	json_object_set_new(doc, "schema", json_string(AGENT_TASK));
	done = journal_begin(p, doc, also, ctx, e);
	if (done == 0) {
		p->seq = 1;
		pipeline_apply(p, "task", doc);
		memcpy(id, row.id, sizeof(row.id));
		timer_set(&p->go, 0);
	} else {
		pipeline_leave(p);
	}
	json_decref(doc);
	return done;
}

/* A pipeline of this team: from memory, else from the store for this request only. */
static struct pipeline *pipeline_bring(struct pipelines *a, const char *team, const char *id,
				       int *brought, struct err *e)
{
	struct store_pipeline row;
	struct pipeline *p;

	*brought = 0;
	if (!id_valid(id) || store_pipeline_get(a->fleet->store, id, &row, e) < 0 ||
	    strcmp(row.team, team) != 0) {
		err_set(e, ERR_NOT_FOUND, "there is no pipeline '%.20s'", id);
		return NULL;
	}
	p = pipeline_find(a, id);
	*brought = !p;
	return p ? p : take_up(a, &row, e);
}

static int pipeline_refuse(struct pipeline *p, int brought, struct err *e, const char *why)
{
	if (brought)
		pipeline_leave(p);
	return err_set(e, ERR_CONFLICT, "%s", why);
}

int pipeline_answer(struct pipelines *a, const char *team, const char *id, const char *name,
		    const char *text, struct err *e)
{
	int brought;
	struct pipeline *p = pipeline_bring(a, team, id, &brought, e);
	const char *asked;
	char why[200];

	if (!p)
		return -1;
	asked = doc_text(p->question, "name");
	if (p->step != NEXT_WAIT || p->unwritten)
		return pipeline_refuse(p, brought, e, "the pipeline waits for no answer");
	if (*name && strcmp(name, asked) != 0) {
		snprintf(why, sizeof(why), "it waits for '%.60s', not for '%.60s'", asked, name);
		return pipeline_refuse(p, brought, e, why);
	}
	p->stage = "orchestrator";
	p->stage_began_us = now_us();
	p->began_ns = fleet_now_ns();
	timer_clear(&p->wall);
	pipeline_store(p, "answer", json_pack("{s:s, s:s}", "name", asked, "text", text),
		       "answered");
	return 0;
}

int pipeline_cancel(struct pipelines *a, const char *team, const char *id, struct err *e)
{
	int brought;
	struct pipeline *p = pipeline_bring(a, team, id, &brought, e);

	if (!p)
		return -1;
	if (p->step == NEXT_OVER) {
		if (brought)
			pipeline_leave(p);
		return 0;
	}
	p->stopped = 0;
	p->stage_began_us = now_us();
	stage_cancel(p);
	return 0;
}

int pipeline_forget(struct pipelines *a, const char *team, const char *id, struct err *e)
{
	int brought;
	struct pipeline *p = pipeline_bring(a, team, id, &brought, e);

	if (!p)
		return -1;
	if (p->step != NEXT_OVER || p->unwritten)
		return pipeline_refuse(p, brought, e, "the pipeline runs; cancel it first");
	pipeline_leave(p);
	return store_pipeline_remove(a->fleet->store, id, e);
}
