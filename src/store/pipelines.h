/* pipelines.h - pipelines from a task to tested code: one row each, its documents, its events,
 * and what was learned. A document is stored before the next stage begins; pipeline/pipeline.c
 * knows what its content means. */
#pragma once
#include "store/store.h"

enum store_pipeline_state {
	STORE_PIPELINE_RUNNING,
	STORE_PIPELINE_WAITING, /* for an answer */
	STORE_PIPELINE_FINISHED,
	STORE_PIPELINE_STATES,
};
const char *store_pipeline_state_name(enum store_pipeline_state state);

enum store_pipeline_stage {
	STORE_STAGE_PLAN,
	STORE_STAGE_CODE,
	STORE_STAGE_EXECUTE,
	STORE_STAGE_DEBUG,
	STORE_STAGES
};

struct store_pipeline {
	char id[ID_MAX + 1];
	char team[STORE_NAME + 1];
	char who[STORE_NAME + 1];
	enum store_pipeline_state state;
	char title[201];              /* how the task begins */
	int64_t created_ns, ended_ns; /* ended 0: not yet */
	char outcome[STORE_WORD + 1], category[STORE_WORD + 1];
	uint64_t attempts, us[STORE_STAGES];
	uint64_t calls, tokens_in, tokens_out, cache_read, cost_micro;
	uint64_t overfit; /* artifacts that passed the visible examples only */
};
struct store_pipelines {
	struct store_pipeline *v;
	unsigned n;
	int more;
};
void store_pipelines_fini(struct store_pipelines *l);

must_check int store_pipeline_insert(struct store *s, const struct store_pipeline *p,
				     struct err *e);
must_check int store_pipeline_update(struct store *s, const struct store_pipeline *p,
				     struct err *e);
must_check int store_pipeline_get(struct store *s, const char *id, struct store_pipeline *out,
				  struct err *e);
/* Newest first; outcome NULL: any, "" not over. */
must_check int store_pipeline_list(struct store *s, const char *team, const char *outcome,
				   const struct store_cursor *after, unsigned limit,
				   struct store_pipelines *out, struct err *e);
must_check int store_pipeline_live(struct store *s, struct store_pipelines *out, struct err *e);
/* Those that ended before then, or have waited for an answer since then; a page of them. */
must_check int store_pipeline_old(struct store *s, const char *team, int64_t before_ns,
				  struct store_pipelines *out, struct err *e);
/* The first team with pipelines after this name. 1: there is one; 0: none; -1. */
must_check int store_pipeline_next_team(struct store *s, const char *after,
					char out[STORE_NAME + 1], struct err *e);
/* The oldest that have ended, of teams that have more than `keep`; a page of them. */
must_check int store_pipeline_surplus(struct store *s, unsigned keep, struct store_pipelines *out,
				      struct err *e);
/* With its documents and events; lessons from it are kept. */
must_check int store_pipeline_remove(struct store *s, const char *id, struct err *e);

struct store_doc {
	uint32_t seq;
	char kind[STORE_WORD + 1];
	uint32_t attempt;
	int64_t created_ns;
	char *json;
};
struct store_docs {
	struct store_doc *v;
	unsigned n;
	int more;
};
void store_docs_fini(struct store_docs *l);
/* ERR_CONFLICT: a document of that number exists, so another process drives this pipeline. */
must_check int store_doc_add(struct store *s, const char *run, const struct store_doc *d,
			     struct err *e);
must_check int store_doc_list(struct store *s, const char *run, struct store_docs *out,
			      struct err *e);

/* Events: kind, attempt and created_ns are in the text. */
must_check int store_pipeline_event_add(struct store *s, const char *run, uint32_t seq,
					const char *json, struct err *e);
must_check int store_pipeline_events(struct store *s, const char *run, uint32_t after,
				     unsigned limit, struct store_docs *out, struct err *e);
must_check int store_pipeline_event_last(struct store *s, const char *run, uint32_t *out,
					 struct err *e);

struct store_policy {              /* of a team, on its pipelines */
	char scan[STORE_WORD + 1]; /* "off", "warn", "block"; "": not set */
	int forgetful;
};
/* For a team without a policy the result is zeroed. */
must_check int store_policy_get(struct store *s, const char *team, struct store_policy *out,
				struct err *e);
must_check int store_policy_put(struct store *s, const char *team, const struct store_policy *p,
				struct err *e);

struct store_lesson {
	char category[STORE_WORD + 1];
	char *task, *fix;
};
struct store_lessons {
	struct store_lesson *v;
	unsigned n;
	int more;
};
void store_lessons_fini(struct store_lessons *l);
must_check int store_lesson_add(struct store *s, const char *team, const char *run,
				const char *task, const char *category, const char *fix,
				struct err *e);
/* Lessons of this team, the most similar first. text is the text of a task: all words of it
 * are searched for, all other characters are ignored. */
must_check int store_lesson_find(struct store *s, const char *team, const char *text, unsigned most,
				 struct store_lessons *out, struct err *e);
must_check int store_lesson_forget(struct store *s, const char *team,
				   struct err *e); /* all of them */

struct store_pipeline_sums { /* of those that have ended */
	uint64_t runs, success, success_attempts, success_cost_micro;
	uint64_t us[STORE_STAGES], calls, tokens_in, tokens_out, cache_read, cost_micro, overfit,
		repaired;
};
/* team NULL: all. */
must_check int store_pipeline_sums(struct store *s, const char *team,
				   struct store_pipeline_sums *out, struct err *e);
struct store_tally {
	char name[STORE_WORD + 1];
	uint64_t n;
};
/* By "outcome" or "category"; at most n of them; how many. */
must_check int store_pipeline_tally(struct store *s, const char *team, const char *by,
				    struct store_tally *out, unsigned n, struct err *e);
/* The last of a kind; attempt 0: of any. */
must_check int store_doc_last(struct store *s, const char *run, const char *kind, uint32_t attempt,
			      struct store_doc *out, struct err *e);
void store_doc_fini(struct store_doc *d);
