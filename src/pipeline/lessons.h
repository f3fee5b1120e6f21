/* lessons.h - lessons of earlier pipelines of a team: one line per change after which a program was
 * verified.
 * Owns: nothing; the lines are rows of the store.
 *
 * Planner and debugger get the lessons of similar tasks as examples. The configuration, the policy
 * of the team or the task can disable storing and showing them. */
#pragma once
#include "pipeline/pipeline_internal.h"

void lessons_add(struct pipeline *p); /* of a verified pipeline */
/* [{task, category, fix}], the most similar first. category: of a failure, or "". */
json_t *lessons_like(const struct pipeline *p, const char *category);
/* A copy of the document with `lessons`, if there are any. */
json_t *lessons_with(const struct pipeline *p, json_t *take_doc, const char *category);
