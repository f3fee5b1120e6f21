/* pipelines.h - /v1/pipelines: from a task in plain text to tested code. */
#pragma once
#include "api/api.h"
#include "store/pipelines.h"

extern const struct field pipelines_fields[], pipelines_post_query[], pipelines_list_query[],
	pipelines_show_query[], pipelines_events_query[], pipelines_answer_fields[],
	pipelines_replay_fields[], pipelines_unlearn_fields[], pipelines_policy_fields[];

void pipelines_post(struct call *c);
/* The task in c->body, for a caller that has chosen the id. Answers 202. */
void pipelines_submit(struct call *c, const char *id);
void pipelines_list(struct call *c);
void pipelines_show(struct call *c);
void pipelines_events(struct call *c);
void pipelines_answer(struct call *c);
void pipelines_cancel(struct call *c);
void pipelines_replay(struct call *c);
void pipelines_delete(struct call *c);
void pipelines_metrics(struct call *c);
void pipelines_unlearn(struct call *c);
void pipelines_policy(struct call *c);
void pipelines_set_policy(struct call *c);

must_check int pipelines_routes_init(struct api *a, struct err *e); /* a->pipelines */

/* Shared by the files of this module. */
json_t *pipelines_row_json(struct api *a, const struct store_pipeline *p);
json_t *pipelines_usage_json(const struct store_pipeline *p);
json_t *pipelines_accepted(const char *id, const char *state);
/* The last document of a kind; attempt 0: of any attempt. NULL: none. */
json_t *pipelines_doc(struct api *a, const char *id, const char *kind, uint32_t attempt);
/* 0: the team has no such pipeline, and that was answered. */
int pipelines_own(struct call *c, struct store_pipeline *row);
