/* pipeline.h - from a task to a report: the states, the documents, the events.
 * Owns: every pipeline that runs or is watched, and the work in progress of its stage.
 * Does not own: rows (store/pipelines.h), clients (v1agent/pipelines.c), what a stage does (plan.h,
 *               code.h, execute.h, debug.h, repair.h, roles.h).
 *
 *   a document is stored --> apply.c --> what comes next --> a stage --> its document is stored ...
 *
 * pipeline_apply.c alone computes the state of a pipeline, so a server that finds the documents of
 * another one continues after the last stored document. A stage that was in progress is run again;
 * it had reported nothing. */
#pragma once
#include "document/document.h"
#include "fleet/fleet.h"
#include "store/pipelines.h"

enum {
	PIPELINES_LIVE = 1000,
	PIPELINES_LIVE_TEAM = 250,   /* in memory, */
	PIPELINES_KEPT_TEAM = 10000, /* and on disk; the oldest finished ones are removed */
	PIPELINE_RACE = 4,
	PIPELINE_QUESTIONS = 5
};

struct checkpoints;
struct llm_client;
struct pipelines_conf {
	uint64_t keep_ms;        /* after the end; 0: without limit */
	int forgetful;           /* no lessons are stored */
	struct llm_client *line; /* NULL: no model */
	struct checkpoints *checkpoints;
};

struct pipelines;
must_check int pipelines_new(struct pipelines **out, struct fleet *f,
			     const struct pipelines_conf *conf, struct err *e);
void pipelines_free(struct pipelines *a); /* running pipelines are continued by the next server */
/* This server is now the only one, or no longer: takes over unfinished pipelines, or releases
 * all. */
void pipelines_alone(struct pipelines *a);

enum pipelines_outcome {
	OUTCOME_VERIFIED,
	OUTCOME_EXAMPLES_PASS,
	OUTCOME_PLAUSIBLE,
	OUTCOME_NOT_UNDERSTOOD,
	OUTCOME_FAILED,
	OUTCOME_NEEDS_INPUT,
	OUTCOME_CANCELLED,
	OUTCOME_COUNT,
};
const char *pipeline_outcome_name(enum pipelines_outcome o);
/* The categories of failures (docs/errors.md), in a fixed order; NULL: that was the last one. */
enum { PIPELINE_CATEGORIES = 64 };
const char *pipeline_category_name(unsigned i);
struct pipelines_figures { /* since this server started */
	unsigned live;
	uint64_t outcomes[OUTCOME_COUNT], attempts, retries, overfit;
	uint64_t failures[PIPELINE_CATEGORIES]; /* diagnosed failed runs */
	struct fleet_histogram stages[STORE_STAGES], whole;
};
const struct pipelines_figures *pipelines_figures(const struct pipelines *a);

/* Creates a pipeline, stored before this returns; also: stored in the same transaction, or NULL.
 * task was checked. id: "", or the id that it gets; its id after the call. */
must_check int pipeline_start(struct pipelines *a, const char *team, const char *who,
			      const json_t *task,
			      int (*also)(void *ctx, const char *id, struct err *e), void *ctx,
			      char id[ID_MAX + 1], struct err *e);

/* A watcher that is notified of new events. */
struct pipeline_watch {
	struct pipeline_watch *next;
	struct pipelines *all; /* NULL: it watches nothing */
	char id[ID_MAX + 1];
	void (*news)(struct pipeline_watch *w);
};
void pipeline_watch(struct pipelines *a, const char *id, struct pipeline_watch *w);
void pipeline_unwatch(struct pipeline_watch *w); /* allowed on one that watches nothing */

/* ERR_NOT_FOUND; ERR_CONFLICT: it does not wait for an answer, or not for this one. */
must_check int pipeline_answer(struct pipelines *a, const char *team, const char *id,
			       const char *name, const char *text, struct err *e);
must_check int pipeline_cancel(struct pipelines *a, const char *team, const char *id,
			       struct err *e);
/* Deletes it with all its documents; ERR_CONFLICT while it runs. */
must_check int pipeline_forget(struct pipelines *a, const char *team, const char *id,
			       struct err *e);
