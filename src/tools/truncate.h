/* truncate.h - keeps the beginning and the end of long output and counts the rest.
 * Owns: both. */
#pragma once
#include "base/buf.h"
#include <stdint.h>

enum { TRUNCATE_HALF = 16 * 1024 };

struct truncated {
	struct buf head, tail;
	uint64_t total;
	size_t half; /* bytes of each that are kept; 0: TRUNCATE_HALF */
};

void truncate_add(struct truncated *c, const char *bytes, size_t n);
uint64_t truncate_lost(const struct truncated *c); /* bytes that are in neither */
/* One text of complete UTF-8 characters; `how` names where the rest is, and may be NULL. */
void truncate_text(const struct truncated *c, const char *how, struct buf *out);
void truncate_fini(struct truncated *c);
