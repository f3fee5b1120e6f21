/* repair_task.h - the input of a repair: source, examples and language of an artifact. */
#pragma once
#include <jansson.h>
#include <stddef.h>

const char *repair_source(const json_t *artifact, size_t *len); /* of the entry file; or NULL */
/* Examples and tests in one list: {call, expected}, {input, expected}, {command, path, content}. */
json_t *repair_examples(const json_t *artifact);
const char *repair_language(const char *language); /* "js" -> "node"; "": unknown */
