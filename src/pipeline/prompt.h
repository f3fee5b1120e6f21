/* prompt.h - prompts for models. The first texts are the same for every request of a role, byte for
 * byte, so that providers can cache them; the variable part comes last, as data between marks.
 * Owns: nothing. */
#pragma once
#include "pipeline/reply_schema.h"

json_t *prompt_system(enum reply_schema f); /* the texts before all messages */

/* The user message. */
json_t *prompt_plan(const json_t *task);
json_t *prompt_code(const json_t *plan);
json_t *prompt_debug(const json_t *plan, const json_t *artifact, const json_t *result,
		     const json_t *before);
/* The message for a second try: the error of the answer. */
json_t *prompt_again(const char *wrong, int too_long);
