/* definition.h - what a template is built from: stages with steps, and the settings of its boxes. The
 * JSON is described in docs/templates.md, "Definition". All sources (Dockerfile, atoll.toml, E2B's
 * API ...) become this JSON; the engine executes nothing else. */
#pragma once
#include "base/err.h"
#include <jansson.h>

enum {
	DEFINITION_BYTES = 1 << 20, /* of its JSON text */
	DEFINITION_STAGES = 64,
	DEFINITION_STEPS = 500,      /* of all stages together */
	DEFINITION_ARGS = 256,       /* of one step */
	DEFINITION_TEXT = 128 << 10, /* bytes of one text, as the kernel permits for an argument */
};

/* The types of steps; a step's "type" is exactly one of these words. */
enum definition_step {
	DEFINITION_RUN,
	DEFINITION_COPY,
	DEFINITION_ADD,
	DEFINITION_ENV,
	DEFINITION_ARG,
	DEFINITION_WORKDIR,
	DEFINITION_USER,
	DEFINITION_PACKAGES,
	DEFINITION_TYPES
};
const char *definition_step_name(enum definition_step type);

/* ERR_INVALID: the message names the place, "stages[0].steps[2].args: ...". A valid definition has at
 * least one stage, only known fields, each of its type and within the limits above, and each `from`
 * of a stage or step that names a stage names an earlier one. */
must_check int definition_check(const json_t *definition, struct err *e);

/* For a checked definition. */
enum definition_step definition_type(const json_t *step);
unsigned definition_target(const json_t *definition); /* the stage whose root is the result */
/* The stage that a `from` names, before stage `limit`; -1: it names no stage. */
int definition_stage(const json_t *definition, const char *from, unsigned limit);
/* 1: the target needs this stage, directly or through other stages. */
int definition_needs(const json_t *definition, unsigned stage);
/* "RUN apt-get install ...", one line, for the log and for errors. */
void definition_step_text(const json_t *step, char *out, unsigned size);
