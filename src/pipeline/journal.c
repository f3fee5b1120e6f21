/* journal.c - see pipeline_internal.h: writes documents, events and the row of a pipeline. */
#include "debug/debug.h"
#include "pipeline/pipeline_internal.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "record/record.h"

#include <stdio.h>
#include <string.h>

static json_t *journal_when(int64_t ns)
{
	return json_time((uint64_t)ns);
}

static int write_event(struct pipeline *p, const char *type, json_t *event, struct err *e)
{
	auto_free char *text = NULL;

	json_object_set_new(event, "seq", json_integer(p->event + 1));
	json_object_set_new(event, "at", journal_when(fleet_now_ns()));
	json_object_set_new(event, "type", json_string(type));
	json_object_set_new(event, "attempt", json_integer(p->attempt));
	if (p->stage)
		json_object_set_new(event, "stage", json_string(p->stage));
	text = json_dumps(event, JSON_COMPACT | RECORD_DIGITS);
	if (!text ||
	    store_pipeline_event_add(p->all->fleet->store, p->row.id, p->event + 1, text, e) < 0)
		return -1;
	p->event++;
	return 0;
}

void pipeline_event(struct pipeline *p, const char *type, json_t *take_event)
{
	struct err e;

	if (write_event(p, type, take_event, &e) == 0)
		pipeline_notify(p->all, p->row.id);
	json_decref(take_event);
}

static int write_doc(struct pipeline *p, const char *kind, json_t *doc, struct err *e)
{
	struct store_doc row = { .seq = p->seq + 1, .created_ns = fleet_now_ns() };
	auto_free char *text = NULL;

	json_object_set_new(doc, "run_id", json_string(p->row.id));
	json_object_set_new(doc, "seq", json_integer(row.seq));
	json_object_set_new(doc, "created_at", journal_when(row.created_ns));
	row.json = text = json_dumps(doc, JSON_COMPACT | RECORD_DIGITS);
	if (!text)
		return err_set(e, ERR_INVALID, "a %s that is not JSON", kind);
	snprintf(row.kind, sizeof(row.kind), "%s", kind);
	row.attempt = json_object_get(doc, "attempt")
			      ? (uint32_t)json_integer_value(json_object_get(doc, "attempt"))
			      : p->attempt;
	return store_doc_add(p->all->fleet->store, p->row.id, &row, e);
}

/* A short description of a document for users. */
static json_t *detail_of(const char *kind, const json_t *doc)
{
	const json_t *phases = json_object_get(doc, "phases"),
		     *last = json_array_get(phases, json_array_size(phases) - 1),
		     *code = json_object_get(last, "exit_code");

	if (!strcmp(kind, "plan"))
		return json_sprintf("%s%s%s", doc_text(doc, "language"),
				    *doc_text(doc, "template") ? " " : "",
				    doc_text(doc, "template"));
	if (!strcmp(kind, "artifact"))
		return json_string(*doc_text(doc, "changed_because")
					   ? doc_text(doc, "changed_because")
					   : doc_text(doc, "entry"));
	if (!strcmp(kind, "result") && code)
		return json_sprintf("%s: exit %d", doc_text(last, "name"),
				    (int)json_integer_value(code));
	if (!strcmp(kind, "result"))
		return json_sprintf("%s: %s", doc_text(last, "name"), doc_text(last, "cause"));
	if (!strcmp(kind, "diagnosis"))
		return json_sprintf("%s: %s", doc_text(doc, "category"),
				    doc_text(doc, "root_cause"));
	if (!strcmp(kind, "question"))
		return json_string(doc_text(doc, "question"));
	return !strcmp(kind, "report") ? json_string(doc_text(doc, "why")) : NULL;
}

static json_t *finished_event(const struct pipeline *p, const char *kind, const json_t *doc,
			      const char *outcome)
{
	return json_pack("{s:s, s:f, s:o*}", "outcome", outcome, "ms",
			 (double)(now_ns() / 1000 - p->stage_began_us) / 1000, "detail",
			 detail_of(kind, doc));
}

/* The last event of a stage, and of the pipeline, if this document ends it. */
static int write_events(struct pipeline *p, const char *kind, const json_t *doc,
			const char *outcome, struct err *e)
{
	json_t *event = finished_event(p, kind, doc, outcome);
	int done = write_event(p, "stage_finished", event, e);

	json_decref(event);
	if (done == 0 && !strcmp(kind, "question")) {
		event = json_pack("{s:O}", "question", doc);
		done = write_event(p, "waiting_input", event, e);
		json_decref(event);
	} else if (done == 0 && !strcmp(kind, "report")) {
		event = json_pack("{s:O}", "report", doc);
		done = write_event(p, "run_finished", event, e);
		json_decref(event);
	}
	return done;
}

const char *pipeline_category_name(unsigned i)
{
	return i < PIPELINE_CATEGORIES ? debug_categories[i].name : NULL;
}

static void journal_count_failure(struct pipelines_figures *f, const char *category)
{
	for (unsigned i = 0; pipeline_category_name(i); i++)
		f->failures[i] += !strcmp(pipeline_category_name(i), category);
}

static void journal_trace(const struct pipeline *p, int stage, const char *kind)
{
	static const char *const names[STORE_STAGES] = { "pipeline planner", "pipeline coder",
							 "pipeline executor", "pipeline debugger" };
	int64_t now = trace_now_ns(), took_ns = (int64_t)(now_ns() - p->stage_began_us * 1000);
	struct trace_span *s = NULL;

	if (!p->trace.is_recorded)
		return;
	if (stage >= 0)
		s = trace_add(&p->stage_trace, names[stage], TRACE_INTERNAL, now - took_ns, now);
	trace_number(s, "atoll.attempt", p->attempt);
	if (strcmp(kind, "report") != 0)
		return;
	s = trace_add(&p->trace, "pipeline", TRACE_INTERNAL, p->row.created_ns, now);
	trace_text(s, "atoll.pipeline", p->row.id);
	trace_text(s, "atoll.team", p->row.team);
	trace_text(s, "atoll.outcome", p->row.outcome);
}

static void journal_count(struct pipeline *p, int stage, const char *kind, const json_t *doc)
{
	struct pipelines_figures *f = &p->all->figures;
	uint64_t us = now_ns() / 1000 - p->stage_began_us;

	journal_trace(p, stage, kind);
	if (stage >= 0) {
		p->row.us[stage] += us;
		fleet_observe(&f->stages[stage], us);
	}
	f->attempts += !strcmp(kind, "result");
	if (!strcmp(kind, "diagnosis"))
		journal_count_failure(f, doc_text(doc, "category"));
	if (strcmp(kind, "report") != 0)
		return;
	p->row.ended_ns = fleet_now_ns();
	fleet_observe(&f->whole, (uint64_t)(p->row.ended_ns - p->row.created_ns) / 1000);
	for (unsigned i = 0; i < OUTCOME_COUNT; i++)
		f->outcomes[i] += !strcmp(pipeline_outcome_name(i), p->row.outcome);
	f->overfit += p->row.overfit > 0;
}

int journal_add(struct pipeline *p, const char *kind, json_t *doc, const char *outcome,
		struct err *e)
{
	struct store *s = p->all->fleet->store;
	uint32_t event = p->event;

	if (store_begin(s, e) < 0)
		return -1;
	if (write_doc(p, kind, doc, e) == 0) {
		struct store_pipeline was = p->row;

		p->seq++;
		journal_count(p, pipeline_apply(p, kind, doc), kind, doc);
		if (write_events(p, kind, doc, outcome, e) < 0 ||
		    store_pipeline_update(s, &p->row, e) < 0)
			store_rollback(s);
		else if (store_commit(s, e) == 0)
			return 0;
		p->row = was;
		p->seq--;
	} else {
		store_rollback(s);
	}
	p->event = event;
	return -1;
}

int journal_begin(struct pipeline *p, json_t *doc, int (*also)(void *, const char *, struct err *),
		  void *ctx, struct err *e)
{
	struct store *s = p->all->fleet->store;
	json_t *event = json_pack("{s:s}", "task", p->row.title);
	int done = -1;

	if (store_begin(s, e) == 0) {
		done = store_pipeline_insert(s, &p->row, e) < 0 ||
				       write_doc(p, "task", doc, e) < 0 ||
				       write_event(p, "run_started", event, e) < 0 ||
				       (also && also(ctx, p->row.id, e) < 0)
			       ? store_rollback(s)
			       : store_commit(s, e);
	}
	json_decref(event);
	return done;
}
