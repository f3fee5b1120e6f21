/* prompt.h - what a model is told. The first texts are the same for every question of a role, byte for byte, so that
 * providers find them in their caches; what differs comes last, as data between marks.
 * Owns: nothing. */
#pragma once
#include "pipeline/reply_schema.h"

json_t *prompt_system(enum reply_schema f); /* the texts before all messages */

/* The one message of the user's. */
json_t *prompt_plan(const json_t *task);
json_t *prompt_code(const json_t *plan);
json_t *prompt_debug(const json_t *plan, const json_t *artifact, const json_t *result,
		     const json_t *before);
/* Once more: what was wrong with the answer. */
json_t *prompt_again(const char *wrong, int too_long);
