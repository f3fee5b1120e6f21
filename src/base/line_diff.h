/* line_diff.h - what differs between two texts, by lines, in the unified format that patch(1) reads.
 * Bounded: with more than LINE_DIFF_EDITS deleted and added lines, the lines between the first and the last difference
 * are deleted and added as a whole, which is true and longer than necessary. */
#pragma once
#include "base/buf.h"
#include <stddef.h>

enum { LINE_DIFF_EDITS = 256, LINE_DIFF_LINES = 8192, LINE_DIFF_CONTEXT = 3 };

/* Appends hunks without the two lines of file names; nothing for equal texts. -1: a text has more than LINE_DIFF_LINES
 * lines. */
int line_diff_unified(const char *a, size_t a_len, const char *b, size_t b_len, struct buf *out);
