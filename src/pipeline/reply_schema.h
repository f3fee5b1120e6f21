/* reply_schema.h - the forms in which a model answers: JSON schemas of the subset that every provider takes, and the
 * check that an answer has its form (providers promise it; we look).
 * Owns: the forms, made at first use, for the life of the process.
 *
 * The subset: objects with all members required and no others, lists, texts, numbers, enumerations,
 * ["T", "null"]. Limits of length are ours, they are not in it. */
#pragma once
#include "document/document.h"

enum reply_schema { FORM_PLAN, FORM_CODE, FORM_DIAGNOSIS, FORM_COUNT };

const char *reply_schema_name(enum reply_schema f); /* "plan" */
const json_t *reply_schema_json(enum reply_schema f);

/* The whole text, one value, no fences, no name twice; then its form. NULL: e has the place. */
json_t *reply_schema_parse(enum reply_schema f, const char *text, size_t n, struct err *e);
