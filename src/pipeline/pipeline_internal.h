/* pipeline_internal.h - a running pipeline: shared by pipeline.c (execution), pipeline_apply.c
 * (state), journal.c (rows), pipeline_stages.c and race.c (work) only.
 * Owns: nothing by itself. */
#pragma once
#include "execute/execute.h"
#include "pipeline/pipeline.h"
#include "repair/repair.h"
#include "pipeline/roles.h"
#include "pipeline/start_files.h"
#include "loop/loop.h"

enum next_step {
	NEXT_PLAN,
	NEXT_CODE,
	NEXT_EXECUTE,
	NEXT_DEBUG,
	NEXT_DECIDE,
	NEXT_REPORT,
	NEXT_WAIT, /* for an answer */
	NEXT_OVER,
};

struct pipeline;
struct runner { /* one artifact of a race */
	struct execution_owner owner;
	struct execution *x;
	struct pipeline *p;
	json_t *artifact, *result;
	int held; /* it is being tested with the held-out example */
};
struct role_call { /* one request to a model */
	struct roles_owner owner;
	struct roles_ask *ask;
	struct pipeline *p;
	json_t *doc; /* its result */
	int over;
	struct err e;
};

struct pipeline {
	struct pipeline *next;
	struct pipelines *all;
	struct store_pipeline row;
	uint32_t seq, event; /* the last stored numbers */
	int64_t began_ns;    /* of the task or the last answer: start of the time budget */
	/* state from the documents; see pipeline_apply.c */
	json_t *task, *plan, *artifact, *result, *diagnosis, *repaired, *question;
	json_t *candidates; /* candidates of this attempt */
	json_t *before;     /* diagnoses so far */
	json_t *seen;       /* {hash: attempt} */
	unsigned attempt, most, questions;
	long held; /* of plan.examples; -1: none */
	int asked; /* a model diagnosed this result */
	enum next_step step;
	/* work in progress */
	const char *stage;
	uint64_t stage_began_us;
	struct trace_context trace, stage_trace; /* of the pipeline, and of the stage in progress */
	struct start_files files;
	struct runner runners[PIPELINE_RACE];
	unsigned nrunners;
	struct role_call askers[PIPELINE_RACE];
	unsigned naskers;
	struct repair_owner repair_owner;
	struct repair *repair;
	unsigned outputs; /* output events of this attempt */
	struct timer go, wall;
	json_t *unwritten; /* a document that could not be stored on a full disk */
	const char *unwritten_kind, *unwritten_outcome;
	int resumed, stopped; /* stopped: by a test */
};

struct pipelines {
	struct fleet *fleet;
	struct pipelines_conf conf;
	struct pipeline *first;
	struct pipeline_watch *watches;
	struct timer tick;
	struct pipelines_figures figures;
	int serving; /* the fleet is ready */
};

/* pipeline_apply.c: applies the next document; returns the stage that it ends, or -1. */
int pipeline_apply(struct pipeline *p, const char *kind, const json_t *doc);
void pipeline_reset(struct pipeline *p); /* resets the state before all documents are read again */

/* journal.c: stores the document, its events and the row in one transaction. */
must_check int journal_begin(struct pipeline *p, json_t *task,
			     int (*also)(void *ctx, const char *id, struct err *e), void *ctx,
			     struct err *e);
must_check int journal_add(struct pipeline *p, const char *kind, json_t *doc, const char *outcome,
			   struct err *e);
/* A single event: if it cannot be stored, it is missing in the stream only. */
void pipeline_event(struct pipeline *p, const char *type, json_t *take_event);

/* pipeline.c: stores the document, ends its stage, and starts the next one from the loop. kind and
 * outcome are static, or live as long as the pipeline. */
void pipeline_store(struct pipeline *p, const char *kind, json_t *take_doc, const char *outcome);
void pipeline_notify(struct pipelines *a, const char *id); /* notifies watchers of new events */
int pipeline_stops(struct pipeline *p, const char *point);
void pipeline_add_usage(struct pipeline *p, const json_t *usage);
json_t *pipeline_usage(const struct pipeline *p);

/* stages.c */
void stage_begin(struct pipeline *p);                 /* of p->step */
void stage_stop(struct pipeline *p);                  /* cancels the work; stores nothing */
void stage_late(struct pipeline *p, const char *why); /* its time or cost budget is exhausted */
void stage_cancel(struct pipeline *p);

/* race.c: p->candidates become one result. With task.box each program runs in a copy of that box. */
void race_begin(struct pipeline *p);
void race_stop(struct pipeline *p);
const json_t *race_held_example(const struct pipeline *p); /* NULL: none is held out */
