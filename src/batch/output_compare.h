/* output_compare.h - is this output what was expected? Pure functions.
 *   exact     byte for byte
 *   trimmed   blanks at the end of lines and newlines at the end of the text do not count
 *   tokens    any white space is as good as any other */
#pragma once
#include <stddef.h>

enum output_compare { JUDGE_TRIMMED, JUDGE_EXACT, JUDGE_TOKENS, JUDGE_COUNT };

int output_compare_parse(const char *name, enum output_compare *out); /* -1: no such way */
int output_compare_same(enum output_compare how, const char *got, size_t got_len, const char *want,
			size_t want_len);
/* The line, from 1, in which they first differ; for a message. */
unsigned output_compare_line(enum output_compare how, const char *got, size_t got_len,
			     const char *want, size_t want_len);
