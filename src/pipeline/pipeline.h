/* pipeline.h - from a task to a report: the states, the documents, the events.
 * Owns:         every pipeline that runs or is looked at, and what its stage has under way.
 * Does not own: rows (store/pipelines.h), clients (v1/pipelines.c), what a stage does (plan.h,
 *               code.h, execute.h, debug.h, repair.h, roles.h).
 *
 *   a document is stored --> apply.c --> what comes next --> a stage --> its document is stored ...
 *
 * apply.c is all there is to a pipeline's state, so a front that finds the documents of another
 * one goes on where it stopped: behind the last that is stored. A stage that was under way is run
 * again; it had told nobody anything. */
#pragma once
#include "document/document.h"
#include "fleet/fleet.h"
#include "store/pipelines.h"

enum {
	PIPELINES_LIVE = 1000,
	PIPELINES_LIVE_TEAM = 250,   /* so that there is room for others, */
	PIPELINES_KEPT_TEAM = 10000, /* and on the disk; the oldest that are over go */
	PIPELINE_RACE = 4,
	PIPELINE_QUESTIONS = 5
};

struct llm_client;
struct pipelines_conf {
	uint64_t keep_ms;        /* behind the end; 0: for ever */
	int forgetful;           /* nothing is learned here */
	struct llm_client *line; /* NULL: nobody to ask */
};

struct pipelines;
must_check int pipelines_new(struct pipelines **out, struct fleet *f,
			     const struct pipelines_conf *conf, struct err *e);
void pipelines_free(struct pipelines *a); /* what runs is taken up by the next front */
/* We are alone with the store now, or no longer: takes up what others left, or lets go of
 * everything. */
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
struct pipelines_figures { /* since this front began */
	unsigned live;
	uint64_t outcomes[OUTCOME_COUNT], attempts, retries, overfit;
	struct fleet_histogram stages[STORE_STAGES], whole;
};
const struct pipelines_figures *pipelines_figures(const struct pipelines *a);

/* A new one, stored before this returns; also: what has to be stored with it, or NULL. task was
 * checked. */
must_check int pipeline_start(struct pipelines *a, const char *team, const char *who,
			      const json_t *task,
			      int (*also)(void *ctx, const char *id, struct err *e), void *ctx,
			      char out_id[ID_LEN + 1], struct err *e);

/* Somebody who wants to know when there are more events. */
struct pipeline_watch {
	struct pipeline_watch *next;
	struct pipelines *all; /* NULL: it watches nothing */
	char id[ID_LEN + 1];
	void (*news)(struct pipeline_watch *w);
};
void pipeline_watch(struct pipelines *a, const char *id, struct pipeline_watch *w);
void pipeline_unwatch(struct pipeline_watch *w); /* fine on one that watches nothing */

/* ERR_NOT_FOUND; ERR_CONFLICT: it does not wait, or not for that. */
must_check int pipeline_answer(struct pipelines *a, const char *team, const char *id,
			       const char *name, const char *text, struct err *e);
must_check int pipeline_cancel(struct pipelines *a, const char *team, const char *id,
			       struct err *e);
/* With all its documents; ERR_CONFLICT while it runs. */
must_check int pipeline_forget(struct pipelines *a, const char *team, const char *id,
			       struct err *e);
