/* reply_schema.h - the forms in which a model answers: JSON schemas of the subset that every provider takes, and the
 * check that an answer has its form (providers promise it; we look).
 * Owns: the forms, made at first use, for the life of the process.
 *
 * The subset: objects with all members required and no others, lists, texts, numbers, enumerations,
 * ["T", "null"]. Limits of length are ours, they are not in it. */
#pragma once
#include "document/document.h"

enum form { FORM_PLAN, FORM_CODE, FORM_DIAGNOSIS, FORM_COUNT };

const char *form_name(enum form f); /* "plan" */
const json_t *form_schema(enum form f);

/* The whole text, one value, no fences, no name twice; then its form. NULL: e has the place. */
json_t *form_parse(enum form f, const char *text, size_t n, struct err *e);
must_check int form_check(const json_t *schema, const json_t *value, struct err *e);
