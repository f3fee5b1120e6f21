/* reply_schema.h - JSON schemas of model answers, in the subset that every provider accepts, and
 * the validation of answers (providers promise it; this checks it).
 * Owns: the schemas, created at first use, for the life of the process.
 *
 * The subset: objects with all members required and no others, lists, texts, numbers, enumerations,
 * ["T", "null"]. Limits of length are checked here, they are not part of the subset. */
#pragma once
#include "document/document.h"

enum reply_schema { FORM_PLAN, FORM_CODE, FORM_DIAGNOSIS, FORM_COUNT };

const char *reply_schema_name(enum reply_schema f); /* "plan" */
const json_t *reply_schema_json(enum reply_schema f);

/* The complete text must be one JSON value without fences and duplicate names, and match the
 * schema. NULL: e names the JSON path. */
json_t *reply_schema_parse(enum reply_schema f, const char *text, size_t n, struct err *e);
