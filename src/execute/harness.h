/* harness.h - a call such as add(2, 3), tried as a program around the one that has it.
 * Owns: nothing. Pure.
 *
 * What the program prints by itself is not the answer: that is what stands behind a mark. */
#pragma once
#include "document/document.h"

enum { HARNESS_MARK = 24 };

/* Can the program be run by itself? A file of functions of a compiled language cannot. */
int harness_has_main(const json_t *artifact);
int harness_can(const char *language); /* are calls of this language known? */
/* The files and the entry of a program that makes the call; borrowed documents are not changed.
 * -1: this language has no calls, or there is no such entry. */
must_check int harness_call(const json_t *artifact, const char *call, const char *mark,
			    json_t **out_files, const char **out_entry, struct err *e);
/* What was answered, of all that was said; NULL: it did not come that far. */
const char *harness_answer(const char *said, size_t n, const char *mark, size_t *out_n);
/* Is it what was expected? 2 and 2.0 are, and so are two lists that are written differently. */
int harness_same(const char *got, size_t n, const char *expected);
