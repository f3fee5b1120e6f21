/* short_text.h - texts of an agent session, truncated in the middle (base/head_tail.h). */
#pragma once
#include "base/head_tail.h"
#include <jansson.h>

/* UTF-8, with the number of missing bytes in the middle. */
void short_text_put(const struct head_tail *c, struct buf *out);
/* A text as a JSON string of at most `most` bytes, plus the note about missing ones. */
json_t *short_text_string(const char *bytes, size_t n, size_t most);
/* A copy of an action whose texts are truncated to `most` bytes. */
json_t *short_text_action(const json_t *action, size_t most);
