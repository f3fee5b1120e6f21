/* truncate.h - the beginning and the end of a long output; what lies between is counted.
 * Owns: both. */
#pragma once
#include "base/buf.h"
#include <stdint.h>

enum { CUT_HALF = 16 * 1024 };

struct cut {
	struct buf head, tail;
	uint64_t total;
	size_t half; /* bytes of each that are kept; 0: CUT_HALF */
};

void cut_add(struct cut *c, const char *bytes, size_t n);
uint64_t cut_lost(const struct cut *c); /* bytes that are in neither */
/* As one text of whole UTF-8 characters; `how` tells where the rest is, and may be NULL. */
void cut_text(const struct cut *c, const char *how, struct buf *out);
void cut_fini(struct cut *c);

/* Any bytes as UTF-8: those that never can be become U+FFFD, and so does NUL. */
void cut_clean(const char *bytes, size_t n, struct buf *out);
