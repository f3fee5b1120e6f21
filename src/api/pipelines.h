/* pipelines.h - /v1/pipelines: from a wish to tested code. */
#pragma once
#include "api/api.h"

extern const struct field pipelines_fields[], pipelines_post_query[], pipelines_list_query[],
	pipelines_show_query[], pipelines_events_query[], pipelines_answer_fields[],
	pipelines_replay_fields[], pipelines_unlearn_fields[], pipelines_policy_fields[];

void pipelines_post(struct call *c);
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

must_check int pipelines_doors_init(struct api *a, struct err *e); /* a->pipelines */
