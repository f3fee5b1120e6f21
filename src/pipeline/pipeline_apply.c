/* pipeline_apply.c - see pipeline_internal.h: applies a document to the state. No clock, no store,
 * no execution: the same documents in the same order give the same state. */
#include "pipeline/pipeline_internal.h"
#include "base/cleanup.h"

#include <stdio.h>
#include <string.h>

static void apply_keep(json_t **where, const json_t *doc)
{
	json_decref(*where);
	*where = json_incref((json_t *)doc);
}

static void apply_forget(json_t **where)
{
	json_decref(*where);
	*where = NULL;
}

static unsigned most_attempts(const json_t *task)
{
	json_int_t n = json_integer_value(
		json_object_get(json_object_get(task, "budget"), "max_attempts"));

	return n > 0 ? (unsigned)n : AGENT_ATTEMPTS;
}

static void apply_task(struct pipeline *p, const json_t *doc)
{
	apply_keep(&p->task, doc);
	p->most = most_attempts(doc);
	p->step = NEXT_PLAN;
}

/* With three examples one is held out: a program that is fitted to the shown examples is not fitted
 * to it. */
static void apply_plan(struct pipeline *p, const json_t *doc)
{
	size_t n = json_array_size(json_object_get(doc, "examples"));

	apply_keep(&p->plan, doc);
	p->held = n >= 3 ? (long)n - 1 : -1;
	p->step = json_is_object(json_object_get(doc, "not_understood"))   ? NEXT_REPORT
		  : json_array_size(json_object_get(doc, "inputs_needed")) ? NEXT_DECIDE
									   : NEXT_CODE;
}

static void apply_artifact(struct pipeline *p, const json_t *doc)
{
	unsigned attempt = (unsigned)json_integer_value(json_object_get(doc, "attempt"));
	json_t *first = json_copy((json_t *)doc), *one;
	size_t i;

	if (attempt != p->attempt) {
		json_array_clear(p->candidates);
		apply_forget(&p->result);
		apply_forget(&p->diagnosis);
		apply_forget(&p->repaired);
		p->asked = 0;
		p->outputs = 0;
	}
	p->attempt = attempt;
	p->row.attempts = attempt;
	json_object_del(first, "rivals");
	json_array_append_new(p->candidates, first);
	json_array_extend(p->candidates, json_object_get(doc, "rivals"));
	json_array_foreach(p->candidates, i, one)
	{
		json_object_set_new(p->seen, doc_text(one, "hash"), json_integer(attempt));
	}
	apply_keep(&p->artifact, json_array_get(p->candidates, 0));
	p->step = NEXT_EXECUTE;
}

/* A held-out example that failed is shown from now on, and another one is held out. */
static void show_held(struct pipeline *p)
{
	json_t *all = json_deep_copy(json_object_get(p->plan, "examples")),
	       *artifact = json_copy(p->artifact);

	p->held = (p->held + 1) % (long)json_array_size(all);
	json_array_remove(all, (size_t)p->held);
	json_object_set_new(artifact, "examples", all);
	apply_keep(&p->artifact, artifact);
	json_decref(artifact);
}

static void apply_result(struct pipeline *p, const json_t *doc)
{
	const json_t *held = json_object_get(doc, "held_out"), *one;
	size_t i;

	json_array_foreach(p->candidates, i, one)
	{
		if (!strcmp(doc_text(one, "hash"), doc_text(doc, "artifact_hash")))
			apply_keep(&p->artifact, one);
	}
	apply_keep(&p->result, doc);
	if (held && !json_is_true(json_object_get(held, "pass"))) {
		p->row.overfit++;
		show_held(p);
	}
	p->step = json_is_true(json_object_get(doc, "success")) ? NEXT_REPORT : NEXT_DEBUG;
}

static void apply_diagnosis(struct pipeline *p, const json_t *doc)
{
	apply_keep(&p->diagnosis, doc);
	json_array_append(p->before, (json_t *)doc);
	p->asked |= !strncmp(doc_text(doc, "source"), "llm", 3);
	p->step = NEXT_DECIDE;
}

static void apply_repair(struct pipeline *p, const json_t *doc)
{
	apply_keep(&p->repaired, doc);
	p->step = NEXT_DECIDE;
}

static void apply_question(struct pipeline *p, const json_t *doc)
{
	apply_keep(&p->question, doc);
	p->questions++;
	p->row.state = STORE_PIPELINE_WAITING;
	p->step = NEXT_WAIT;
}

static json_t *member_object(json_t *task, const char *name)
{
	json_t *found = json_object_get(task, name);

	if (json_is_object(found))
		return found;
	json_object_set_new(task, name, json_object());
	return json_object_get(task, name);
}

/* An answer for a member of the task is stored in that member. A debugger asks for files by name;
 * everything else is stored as an answer. */
static void apply_answer(struct pipeline *p, const json_t *doc)
{
	static const char *const members[] = { "stdin", "language" };
	const char *name = doc_text(doc, "name");
	json_t *task = json_deep_copy(p->task), *text = json_object_get(doc, "text");
	unsigned i = 0;

	while (i < ARRAY_LEN(members) && strcmp(members[i], name) != 0)
		i++;
	if (i < ARRAY_LEN(members))
		json_object_set(task, name, text);
	else if (json_object_get(p->diagnosis, "question"))
		json_object_set(member_object(task, "files"), name, text);
	else
		json_object_set(member_object(task, "answers"), name, text);
	apply_keep(&p->task, task);
	json_decref(task);
	apply_forget(&p->question);
	apply_forget(&p->diagnosis);
	p->row.state = STORE_PIPELINE_RUNNING;
	p->most = p->attempt + most_attempts(p->task);
	p->step = NEXT_PLAN;
}

static void apply_report(struct pipeline *p, const json_t *doc)
{
	snprintf(p->row.outcome, sizeof(p->row.outcome), "%.32s", doc_text(doc, "outcome"));
	snprintf(p->row.category, sizeof(p->row.category), "%.32s", doc_text(doc, "category"));
	p->row.state = STORE_PIPELINE_FINISHED;
	p->step = NEXT_OVER;
}

static const struct {
	const char *kind;
	void (*apply)(struct pipeline *p, const json_t *doc);
	int stage; /* the stage in progress */
} kinds[] = {
	{ "task", apply_task, -1 },
	{ "plan", apply_plan, STORE_STAGE_PLAN },
	{ "artifact", apply_artifact, STORE_STAGE_CODE },
	{ "result", apply_result, STORE_STAGE_EXECUTE },
	{ "diagnosis", apply_diagnosis, STORE_STAGE_DEBUG },
	{ "repair", apply_repair, STORE_STAGE_DEBUG },
	{ "question", apply_question, -1 },
	{ "answer", apply_answer, -1 },
	{ "report", apply_report, -1 },
};

int pipeline_apply(struct pipeline *p, const char *kind, const json_t *doc)
{
	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++)
		if (!strcmp(kinds[i].kind, kind)) {
			kinds[i].apply(p, doc);
			return kinds[i].stage;
		}
	return -1;
}

void pipeline_reset(struct pipeline *p)
{
	json_array_clear(p->before);
	json_array_clear(p->candidates);
	json_object_clear(p->seen);
	apply_forget(&p->result);
	apply_forget(&p->diagnosis);
	apply_forget(&p->repaired);
	p->attempt = p->questions = 0;
}
