/* pipeline_stages.c - the work of each stage of a pipeline. See pipeline_internal.h; documents are
 * stored elsewhere.
 *
 *   planner, coder, debugger   pure where a library, a rule or given code is enough; else a model's
 *   executor                   boxes; several artifacts at once: race.c
 *   orchestrator               what comes next, from what is stored alone */
#include "plan/code.h"
#include "pipeline/pipeline_internal.h"
#include "debug/debug.h"
#include "pipeline/lessons.h"
#include "plan/plan.h"
#include "pipeline/report.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "record/changes.h"

#include <stdio.h>
#include <string.h>

enum { REPAIR_BOXES = 4 };
#define SURE 0.5 /* below it a model is called, if there is one */

/* ---- a model ---- */

static int is_mode(const struct pipeline *p, const char *mode)
{
	return !strcmp(doc_text(p->task, "mode"), mode);
}

static double stages_budget(const struct pipeline *p, const char *name)
{
	return json_number_value(json_object_get(json_object_get(p->task, "budget"), name));
}

/* NULL: within the budget. */
static const char *stages_spent(const struct pipeline *p)
{
	const struct store_pipeline *row = &p->row;
	double calls = stages_budget(p, "max_calls"), tokens = stages_budget(p, "max_tokens"),
	       cost = stages_budget(p, "max_cost");

	if (json_object_get(json_object_get(p->task, "budget"), "max_calls") &&
	    (double)row->calls >= calls)
		return "no more calls of a model (budget.max_calls)";
	if (tokens > 0 && (double)(row->tokens_in + row->tokens_out) >= tokens)
		return "no more tokens (budget.max_tokens)";
	if (cost > 0 && (double)row->cost_micro / 1e6 >= cost)
		return "no more money (budget.max_cost)";
	return NULL;
}

static int may_ask(const struct pipeline *p, const char *role)
{
	return !is_mode(p, "heuristic") && !stages_spent(p) && roles_has(p->all->conf.line, role);
}

/* The exhausted budget that prevents a model call; NULL: none. */
static const char *kept_by_budget(const struct pipeline *p, const char *role)
{
	return !is_mode(p, "heuristic") && roles_has(p->all->conf.line, role) ? stages_spent(p)
									      : NULL;
}

/* How to enable a model where none was called; NULL: one was called, or could have been. */
static const char *model_hint(const struct pipeline *p)
{
	if (!roles_has(p->all->conf.line, "planner") && !roles_has(p->all->conf.line, "coder"))
		return "a model would help: describe one in a file and name it by `serve.models` in the settings or "
		       "`atoll serve --models FILE` (see `man atoll`, docs/pipeline.md)";
	return is_mode(p, "heuristic")
		       ? "a model would help: one is configured, and mode \"heuristic\" keeps it from "
			 "being asked; leave out `mode`, or say \"auto\""
		       : NULL;
}

static void model_called(struct roles_owner *o, const json_t *event)
{
	struct pipeline *p = loop_owner(o, struct role_call, owner)->p;

	pipeline_event(p, "model_call", json_copy((json_t *)event));
}

static struct role_call *new_asker(struct pipeline *p,
				   void (*done)(struct roles_owner *, json_t *, const json_t *,
						const struct err *))
{
	struct role_call *k = &p->askers[p->naskers++];

	*k = (struct role_call){ .p = p, .owner = { .called = model_called, .done = done } };
	return k;
}

/* The number of model calls without an answer. */
static unsigned stages_answered(struct role_call *k, json_t *take_doc, const json_t *usage,
				const struct err *e)
{
	struct pipeline *p = k->p;
	unsigned open = 0;

	k->ask = NULL;
	k->over = 1;
	k->doc = take_doc;
	if (e)
		k->e = *e;
	pipeline_add_usage(p, usage);
	for (unsigned i = 0; i < p->naskers; i++)
		open += !p->askers[i].over;
	return open;
}

static void forget_askers(struct pipeline *p)
{
	for (unsigned i = 0; i < p->naskers; i++) {
		if (p->askers[i].ask)
			roles_cancel(p->askers[i].ask);
		json_decref(p->askers[i].doc);
	}
	p->naskers = 0;
}

/* ---- its end ---- */

static void stages_report(struct pipeline *p, enum pipelines_outcome outcome, const char *why,
			  const char *category)
{
	json_t *doc = json_pack("{s:s, s:s, s:o, s:o, s:I, s:o, s:f}", "schema", AGENT_REPORT,
				"outcome", pipeline_outcome_name(outcome), "why", json_text(why),
				"evidence", report_evidence(p->plan, p->artifact, p->result),
				"attempts", (json_int_t)p->attempt, "usage", pipeline_usage(p),
				"ms", (double)(fleet_now_ns() - p->row.created_ns) / 1e6);

	p->stage = "orchestrator";
	if (p->artifact)
		json_object_set(doc, "artifact", p->artifact);
	if (p->result)
		json_object_set_new(doc, "output", json_string(report_output(p->result)));
	if (category && *category)
		json_object_set_new(doc, "category", json_string(category));
	if (p->diagnosis && outcome == OUTCOME_FAILED) {
		json_object_set_new(doc, "root_cause",
				    json_string(doc_text(p->diagnosis, "root_cause")));
		json_object_set_new(doc, "lessons", lessons_like(p, category ? category : ""));
	}
	if ((outcome == OUTCOME_NOT_UNDERSTOOD || outcome == OUTCOME_FAILED) && model_hint(p))
		json_object_set_new(doc, "hint", json_string(model_hint(p)));
	if (outcome == OUTCOME_NOT_UNDERSTOOD)
		json_object_set(doc, "nearest",
				json_object_get(json_object_get(p->plan, "not_understood"),
						"nearest"));
	stage_stop(p);
	pipeline_store(p, "report", doc, pipeline_outcome_name(outcome));
}

static void report_end(struct pipeline *p)
{
	const json_t *lost = json_object_get(p->plan, "not_understood");
	const char *why, *label;

	if (*doc_text(lost, "model")) { /* the task was understood */
		stages_report(p, OUTCOME_FAILED, doc_text(lost, "model"), "model");
		return;
	}
	if (*doc_text(lost, "budget")) {
		stages_report(p, OUTCOME_FAILED, doc_text(lost, "budget"), "budget");
		return;
	}
	if (json_is_object(lost)) {
		why = doc_text(lost, "why");
		stages_report(p, OUTCOME_NOT_UNDERSTOOD,
			      *why ? why : "no task of the library is like it", NULL);
		return;
	}
	label = report_label(p->plan, p->artifact, p->result, &why);
	if (!strcmp(label, "verified")) {
		lessons_add(p);
		stages_report(p, OUTCOME_VERIFIED, why, NULL);
	} else {
		stages_report(p,
			      !strcmp(label, "examples_pass") ? OUTCOME_EXAMPLES_PASS
							      : OUTCOME_PLAUSIBLE,
			      why, NULL);
	}
}

void stage_late(struct pipeline *p, const char *why)
{
	stages_report(p, OUTCOME_FAILED, why, "budget");
}

void stage_cancel(struct pipeline *p)
{
	json_decref(p->unwritten);
	p->unwritten = NULL;
	stages_report(p, OUTCOME_CANCELLED, "a client cancelled it", NULL);
}

/* ---- planner ---- */

/* member: "why" it is not understood, the result of the "model", or the exhausted "budget". */
static json_t *no_plan(const char *member, const char *text)
{
	return json_pack("{s:s, s:{s:s, s:[]}, s:[]}", "schema", AGENT_PLAN, "not_understood",
			 member, text, "nearest", "inputs_needed");
}

static void plan_done(struct pipeline *p, json_t *take_plan)
{
	int lost = json_is_object(json_object_get(take_plan, "not_understood"));

	pipeline_store(p, "plan", take_plan,
		       lost ? "not understood"
		       : json_array_size(json_object_get(take_plan, "inputs_needed")) ? "asks"
										      : "planned");
}

static void model_planned(struct roles_owner *o, json_t *take_doc, const json_t *usage,
			  const struct err *e)
{
	struct role_call *k = loop_owner(o, struct role_call, owner);
	struct pipeline *p = k->p;
	json_t *plan = take_doc;

	stages_answered(k, NULL, usage, e);
	p->naskers = 0;
	if (!plan && !is_mode(p, "llm"))
		plan = plan_make(p->task); /* neither better nor worse */
	plan_done(p, plan ? plan : no_plan("model", e ? e->msg : "the model had no plan"));
}

static int is_sure(const json_t *plan)
{
	return plan && !json_is_object(json_object_get(plan, "not_understood")) &&
	       (json_number_value(json_object_get(plan, "confidence")) >= SURE ||
		!strcmp(doc_text(plan, "source"), "given"));
}

static void plan_stage(struct pipeline *p)
{
	json_t *plan = is_mode(p, "llm") ? NULL : plan_make(p->task);

	if (!is_sure(plan) && may_ask(p, "planner")) {
		struct role_call *k = new_asker(p, model_planned);
		json_t *task = lessons_with(p, json_copy(p->task), "");

		json_decref(plan);
		k->ask = roles_plan(p->all->conf.line, task, &k->owner);
		json_decref(task);
		return;
	}
	if (!is_sure(plan) && kept_by_budget(p, "planner")) {
		json_decref(plan);
		plan = no_plan("budget", kept_by_budget(p, "planner"));
	}
	plan_done(p, plan ? plan
			  : no_plan("why",
				    "mode is \"llm\", and no model is configured for the planner"));
}

/* ---- coder ---- */

/* The plan for coder, debugger and repair: without the held-out example. */
static json_t *shown_plan(const struct pipeline *p)
{
	json_t *plan = json_copy(p->plan), *examples;

	if (p->held < 0)
		return plan;
	examples = json_copy(json_object_get(plan, "examples"));
	json_array_remove(examples, (size_t)p->held);
	json_object_set_new(plan, "examples", examples);
	return plan;
}

static void stages_ready(json_t *artifact, unsigned attempt)
{
	if (!json_object_get(artifact, "schema"))
		json_object_set_new(artifact, "schema", json_string(AGENT_ARTIFACT));
	json_object_set_new(artifact, "attempt", json_integer(attempt));
	artifact_set_hash(artifact);
}

/* 1: another attempt is possible. */
static int is_new(const struct pipeline *p, json_t *artifact)
{
	if (!artifact)
		return 0;
	stages_ready(artifact, p->attempt + 1);
	return !json_object_get(p->seen, doc_text(artifact, "hash"));
}

static int has_hash(const json_t *list, const char *hash)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (!strcmp(doc_text(one, "hash"), hash))
			return 1;
	}
	return 0;
}

/* The first one is the document of this stage, the others are its rivals: one document per
 * attempt. */
static void store_candidates(struct pipeline *p, json_t *take_list, const char *outcome)
{
	json_t *first = json_incref(json_array_get(take_list, 0));

	json_array_remove(take_list, 0);
	if (json_array_size(take_list))
		json_object_set_new(first, "rivals", take_list);
	else
		json_decref(take_list);
	pipeline_store(p, "artifact", first, outcome);
}

static void models_coded(struct roles_owner *o, json_t *take_doc, const json_t *usage,
			 const struct err *e)
{
	struct role_call *k = loop_owner(o, struct role_call, owner);
	struct pipeline *p = k->p;
	json_t *list;
	char why[240];

	if (stages_answered(k, take_doc, usage, e))
		return;
	list = json_array();
	snprintf(why, sizeof(why), "%s", p->askers[0].e.msg);
	for (unsigned i = 0; i < p->naskers; i++) {
		json_t *one = p->askers[i].doc;

		if (!one)
			continue;
		stages_ready(one, p->attempt + 1);
		if (!has_hash(list, doc_text(one, "hash")))
			json_array_append(list, one);
	}
	forget_askers(p);
	if (json_array_size(list)) {
		store_candidates(p, list, "coded");
		return;
	}
	json_decref(list);
	stages_report(p, OUTCOME_FAILED, why, "no_code");
}

static unsigned race_of(const struct pipeline *p)
{
	json_int_t n = json_integer_value(json_object_get(p->task, "race"));

	return n < 1 ? 1 : n > PIPELINE_RACE ? PIPELINE_RACE : (unsigned)n;
}

static void code_stage(struct pipeline *p)
{
	json_t *plan = shown_plan(p), *artifact;
	struct err e = { 0 };

	artifact = code_make(plan, &e);
	if (artifact && !is_new(p, artifact)) { /* an answer that changed nothing */
		json_decref(artifact);
		stages_report(p, OUTCOME_FAILED, "it would be the same program again",
			      "no_progress");
	} else if (artifact) {
		json_t *list = json_array();

		json_array_append_new(list, artifact);
		store_candidates(p, list, "coded");
	} else if (may_ask(p, "coder")) {
		unsigned n = race_of(p);

		while (p->naskers < n) {
			struct role_call *k = new_asker(p, models_coded);

			k->ask = roles_code(p->all->conf.line, plan, &k->owner);
		}
	} else if (kept_by_budget(p, "coder")) {
		stages_report(p, OUTCOME_FAILED, kept_by_budget(p, "coder"), "budget");
	} else {
		stages_report(p, OUTCOME_FAILED,
			      e.msg[0] ? e.msg : "no model is configured that could write it",
			      "no_code");
	}
	json_decref(plan);
}

/* ---- debugger ---- */

/* Adds lessons about the same category. */
static void stages_recall(const struct pipeline *p, json_t *diagnosis)
{
	const char *category = doc_text(diagnosis, "category");
	json_t *found = lessons_like(p, category), *one;
	size_t i;

	json_array_foreach(found, i, one)
	{
		if (!strcmp(doc_text(one, "category"), category))
			json_array_append_new(
				json_object_get(diagnosis, "evidence"),
				json_pack("{s:s, s:o}", "source", "memory", "text",
					  json_sprintf("helped before: %s", doc_text(one, "fix"))));
	}
	json_decref(found);
}

static void debug_stage(struct pipeline *p)
{
	json_t *plan = shown_plan(p), *d = debug_make(plan, p->artifact, p->result, p->before);

	json_decref(plan);
	if (!d)
		d = json_pack("{s:s, s:s, s:f, s:[], s:s, s:s, s:{s:s, s:s}, s:s}", "schema",
			      AGENT_DIAGNOSIS, "category", "unknown", "confidence", 0.0, "evidence",
			      "root_cause", "nothing that is known", "fixable", "llm", "action",
			      "kind", "stop", "detail", "", "novelty",
			      doc_text(p->artifact, "hash"));
	stages_recall(p, d);
	json_object_set_new(d, "attempt", json_integer(p->attempt));
	pipeline_store(p, "diagnosis", d, "diagnosed");
}

/* The first answer with a program is the diagnosis; the programs of the others are its rivals. */
static json_t *best_diagnosis(struct pipeline *p)
{
	json_t *best = NULL, *rivals = json_array();

	for (unsigned i = 0; i < p->naskers; i++) {
		json_t *one = p->askers[i].doc, *artifact = json_object_get(one, "new_artifact");

		if (one && (!best || (artifact && !json_object_get(best, "new_artifact"))))
			best = one;
		else if (artifact)
			json_array_append(rivals, artifact);
	}
	if (best && json_array_size(rivals))
		json_object_set(best, "rivals", rivals);
	json_decref(rivals);
	return json_incref(best);
}

static void models_debugged(struct roles_owner *o, json_t *take_doc, const json_t *usage,
			    const struct err *e)
{
	struct role_call *k = loop_owner(o, struct role_call, owner);
	struct pipeline *p = k->p;
	json_t *doc;

	if (stages_answered(k, take_doc, usage, e))
		return;
	doc = best_diagnosis(p);
	if (!doc) { /* the existing diagnosis is kept */
		doc = json_copy(p->diagnosis);
		json_object_del(doc, "new_artifact");
		json_object_set_new(doc, "why", json_string(p->askers[0].e.msg));
	}
	forget_askers(p);
	if (strncmp(doc_text(doc, "source"), "llm", 3) != 0)
		json_object_set_new(doc, "source", json_string("llm"));
	json_object_set_new(doc, "attempt", json_integer(p->attempt));
	pipeline_store(p, "diagnosis", doc, "diagnosed by a model");
}

static void ask_debuggers(struct pipeline *p)
{
	json_t *plan = lessons_with(p, shown_plan(p), doc_text(p->diagnosis, "category"));
	const char *why;
	unsigned level = roles_level(p->before, p->diagnosis, &why), n = race_of(p);

	p->stage = "debugger";
	pipeline_event(p, "stage_started", json_pack("{s:s}", "why", why ? why : ""));
	while (p->naskers < n) {
		struct role_call *k = new_asker(p, models_debugged);

		k->ask = roles_debug(p->all->conf.line, plan, p->artifact, p->result, p->before,
				     level, &k->owner);
	}
	json_decref(plan);
}

/* ---- repair ---- */

static void stages_repaired(struct repair_owner *o, json_t *take_artifact, json_t *take_found)
{
	struct pipeline *p = loop_owner(o, struct pipeline, repair_owner);
	json_t *doc = json_pack("{s:o, s:I}", "found", take_found ? take_found : json_object(),
				"attempt", (json_int_t)p->attempt);

	p->repair = NULL;
	if (take_artifact)
		json_object_set_new(doc, "new_artifact", take_artifact);
	pipeline_store(p, "repair", doc, take_artifact ? "repaired" : "no repair found");
}

static int repair_files(struct repair_owner *o, struct batch_files *out, struct err *e)
{
	const struct pipeline *p = loop_owner(o, struct pipeline, repair_owner);
	json_t *env = NULL;
	int rc = start_files_read(p->all->fleet->store, p->row.team, p->files.checkpoint, out, &env,
				  e);

	json_decref(env);
	return rc;
}

static void begin_repair(struct pipeline *p)
{
	p->stage = "repair";
	pipeline_event(p, "stage_started", json_object());
	if (pipeline_stops(p, "before"))
		return;
	p->repair_owner.done = stages_repaired;
	p->repair_owner.key = p->row.who;
	p->repair_owner.pipeline = p->row.id;
	p->repair_owner.isolation = isolation_stored(p->task);
	start_files_of_result(p, p->result);
	p->repair_owner.files = p->files.checkpoint[0] ? repair_files : NULL;
	p->repair_owner.env = p->files.env;
	p->repair = repair_start(p->all->fleet, p->row.team, p->artifact, race_held_example(p),
				 REPAIR_BOXES, &p->repair_owner);
}

/* ---- orchestrator ---- */

static void stages_ask(struct pipeline *p, const json_t *question)
{
	json_t *doc = json_deep_copy(question);

	if (p->questions >= PIPELINE_QUESTIONS) {
		json_decref(doc);
		stages_report(p, OUTCOME_FAILED, "it has asked too often", "needs_input");
		return;
	}
	pipeline_store(p, "question", doc, "needs input");
}

static void add_new(const struct pipeline *p, json_t *list, const json_t *artifact)
{
	json_t *copy = artifact ? json_deep_copy(artifact) : NULL;

	if (is_new(p, copy) && !has_hash(list, doc_text(copy, "hash")))
		json_array_append(list, copy);
	json_decref(copy);
}

static const char *novelty_at(const json_t *before, size_t i)
{
	return doc_text(json_array_get(before, i), "novelty");
}

/* The same diagnosis as in an earlier attempt: that fix did not help. */
static int is_stuck(const struct pipeline *p)
{
	const char *now = doc_text(p->diagnosis, "novelty");
	json_int_t attempt = json_integer_value(json_object_get(p->diagnosis, "attempt"));

	for (size_t i = 0; *now && i < json_array_size(p->before); i++)
		if (json_integer_value(json_object_get(json_array_get(p->before, i), "attempt")) <
			    attempt &&
		    !strcmp(novelty_at(p->before, i), now))
			return 1;
	return 0;
}

static void stages_retry(struct pipeline *p, json_t *take_list)
{
	const json_t *first = json_array_get(take_list, 0);

	p->all->figures.retries++;
	pipeline_event(p, "retry",
		       json_pack("{s:s, s:s}", "reason", doc_text(p->diagnosis, "root_cause"),
				 "change", doc_text(first, "changed_because")));
	store_candidates(p, take_list, "another attempt");
}

/* In a race a patch found by search competes with the patch of a rule. */
static int wants_rival(const struct pipeline *p)
{
	return !p->repaired && !strcmp(doc_text(p->result, "phase"), "check") &&
	       json_object_get(p->diagnosis, "new_artifact") && repair_possible(p->artifact);
}

/* The next possible steps, the most promising first. */
static json_t *stages_candidates(const struct pipeline *p)
{
	json_t *list = json_array();
	const json_t *one;
	size_t i;

	add_new(p, list, json_object_get(p->repaired, "new_artifact"));
	add_new(p, list, json_object_get(p->diagnosis, "new_artifact"));
	json_array_foreach(json_object_get(p->diagnosis, "rivals"), i, one)
	{
		add_new(p, list, one);
	}
	while (json_array_size(list) > race_of(p))
		json_array_remove(list, json_array_size(list) - 1);
	return list;
}

/* No step is left. The report names the failure, and which steps were not taken and why. */
static void report_stop(struct pipeline *p)
{
	const char *cause = doc_text(p->diagnosis, "root_cause"),
		   *detail = doc_text(json_object_get(p->diagnosis, "action"), "detail"),
		   *found = doc_text(json_object_get(p->repaired, "found"), "why");
	char why[1200];

	if (p->repaired && *found)
		snprintf(why, sizeof(why), "%.700s; no repair was found: %.300s", cause, found);
	else if (!strncmp(detail, "there is no search", 18))
		snprintf(why, sizeof(why), "%.700s; %.300s", cause, detail);
	else
		snprintf(why, sizeof(why), "%.1100s",
			 *cause ? cause : "no rule says what to do about it");
	stages_report(p, OUTCOME_FAILED, why, doc_text(p->diagnosis, "category"));
}

static void stages_decide(struct pipeline *p)
{
	const json_t *needed = json_array_get(json_object_get(p->plan, "inputs_needed"), 0),
		     *d = p->diagnosis, *question = json_object_get(d, "question");
	const char *kind = doc_text(json_object_get(d, "action"), "kind"),
		   *category = doc_text(d, "category");
	json_t *list;

	if (!d && needed) {
		stages_ask(p, needed);
		return;
	}
	if (is_stuck(p)) {
		stages_report(p, OUTCOME_FAILED,
			      "the same fault again: what was changed did not help", category);
		return;
	}
	if (!strcmp(kind, "ask") && json_is_object(question)) {
		stages_ask(p, question);
		return;
	}
	if (p->attempt >= p->most) {
		stages_report(p, OUTCOME_FAILED, "no attempt is left", category);
		return;
	}
	if (race_of(p) > 1 && wants_rival(p)) {
		begin_repair(p);
		return;
	}
	list = stages_candidates(p);
	if (json_array_size(list)) {
		stages_retry(p, list);
		return;
	}
	json_decref(list);
	if ((!strcmp(kind, "repair") || !strcmp(doc_text(d, "fixable"), "search")) &&
	    !p->repaired && repair_possible(p->artifact))
		begin_repair(p);
	else if (!p->asked && may_ask(p, "debugger"))
		ask_debuggers(p);
	else if (!p->asked && kept_by_budget(p, "debugger"))
		stages_report(p, OUTCOME_FAILED, kept_by_budget(p, "debugger"), "budget");
	else
		report_stop(p);
}

/* ---- all of them ---- */

static const struct {
	const char *name;
	void (*begin)(struct pipeline *p);
} stages[] = {
	[NEXT_PLAN] = { "planner", plan_stage },
	[NEXT_CODE] = { "coder", code_stage },
	[NEXT_EXECUTE] = { "executor", race_begin },
	[NEXT_DEBUG] = { "debugger", debug_stage },
	[NEXT_DECIDE] = { "orchestrator", stages_decide },
	[NEXT_REPORT] = { "orchestrator", report_end },
};

void stage_begin(struct pipeline *p)
{
	p->stage = stages[p->step].name;
	pipeline_event(p, "stage_started", json_object());
	if (!pipeline_stops(p, "before"))
		stages[p->step].begin(p);
}

void stage_stop(struct pipeline *p)
{
	race_stop(p);
	forget_askers(p);
	if (p->repair)
		repair_cancel(p->repair);
	p->repair = NULL;
	start_files_fini(p);
}
