/* template_steps.h - the body of E2B's "start build" as a definition of a template
 * (template/definition.h). Owns: nothing. */
#pragma once
#include "api/fields.h"
#include "store/builds.h"

extern const struct field template_steps_fields[];

/* ERR_INVALID: the message names the field. The settings of the build (cpu, memory) are not part of
 * the body; the caller adds them. *out is owned by the caller. */
must_check int template_steps_definition(const json_t *body, json_t **out, struct err *e);

/* {message, step} for a failed build: the step is "base", "1" ... or "finalize". NULL: it has not failed. */
json_t *template_steps_reason(const struct store_build *b);
/* The same name of a step for an entry of the log, whose step is the engine's number. Frees nothing. */
json_t *template_steps_name(const json_t *definition, const json_t *number);
