/* output_compare.h - is this output what was expected? Pure functions.
 *   exact     byte for byte
 *   trimmed   blanks at the end of lines and newlines at the end of the text do not count
 *   tokens    any white space is as good as any other */
#pragma once
#include <stddef.h>

enum judge { JUDGE_TRIMMED, JUDGE_EXACT, JUDGE_TOKENS, JUDGE_COUNT };

int judge_parse(const char *name, enum judge *out); /* -1: no such way */
int judge_same(enum judge how, const char *got, size_t got_len, const char *want, size_t want_len);
/* The line, from 1, in which they first differ; for a message. */
unsigned judge_line(enum judge how, const char *got, size_t got_len, const char *want,
		    size_t want_len);
