/* head_tail.h - the beginning and the end of what may be long; what lies between is counted.
 * Owns: both. Memory is bounded by `most`, however much comes. */
#pragma once
#include "base/buf.h"
#include <jansson.h>
#include <stdint.h>

struct head_tail {
	size_t most; /* bytes kept, half of them from the beginning */
	struct buf head, tail;
	uint64_t total;
};
void head_tail_add(struct head_tail *c, const char *bytes, size_t n);
uint64_t head_tail_lost(const struct head_tail *c);
void head_tail_text(const struct head_tail *c,
		    struct buf *out); /* UTF-8, with the count in its middle */
void head_tail_fini(struct head_tail *c);

/* A text as a JSON string of at most so many bytes and a count. */
json_t *head_tail_string(const char *bytes, size_t n, size_t most);
/* A copy of an action whose texts are cut to so many bytes. */
json_t *head_tail_action(const json_t *action, size_t most);
