/* batch.h - /v1/batch: many programs in one request; each result is sent when its program ends. */
#pragma once
#include "api/api.h"

extern const struct field batch_query[], batch_list_query[], batch_results_query[],
	batch_delete_query[], batch_body_fields[];

void batch_post(struct call *c);
/* The batch in c->body, checked with batch_body_fields, for a caller that has chosen the id and does not
 * read the results. Answers 202. */
void batch_submit(struct call *c, const char *id);
/* Cancels a batch of this team, if there is one that runs. */
void batch_end_by_id(struct api *a, const char *team, const char *id);
void batch_list(struct call *c);
void batch_show(struct call *c);
void batch_results_get(struct call *c);
void batch_delete(struct call *c);

must_check int batch_routes_init(struct api *a, struct err *e); /* a->batches */
