/* lessons.h - what helped a team's pipelines before: a line per change behind which a program was verified.
 * Owns: nothing; the lines are the store's.
 *
 * Whoever plans or looks for a mistake is shown those that are like the task, as examples. Nothing is kept and nothing is
 * shown where the configuration, the team's policy or the task itself says so. */
#pragma once
#include "pipeline/pipeline_internal.h"

void lessons_add(struct pipeline *p); /* of one that is verified */
/* [{task, category, fix}], the likest first. category: of a mistake, or "". */
json_t *lessons_like(const struct pipeline *p, const char *category);
/* The same document with `lessons` in it, where there are any. */
json_t *lessons_with(const struct pipeline *p, json_t *take_doc, const char *category);
