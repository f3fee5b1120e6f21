/* head_tail.h - the beginning and the end of a long output; the bytes between them are counted.
 * Owns: both. Memory is bounded by `half`, however long the output is. */
#pragma once
#include "base/buf.h"
#include <stdint.h>

struct head_tail {
	size_t half; /* bytes kept of the beginning, and as many of the end */
	struct buf head, tail;
	uint64_t total;
};

void head_tail_add(struct head_tail *c, const char *bytes, size_t n);
uint64_t head_tail_lost(const struct head_tail *c); /* bytes that are left out */
/* As one text of whole UTF-8 characters. If bytes are lost, `gap` describes them in the middle. */
void head_tail_text(const struct head_tail *c, const char *gap, struct buf *out);
void head_tail_fini(struct head_tail *c);
