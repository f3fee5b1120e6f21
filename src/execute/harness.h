/* harness.h - a program that calls a function such as add(2, 3) of another program.
 * Owns: nothing. Pure. The result is printed after a mark, which separates it from other output. */
#pragma once
#include "document/document.h"

enum { HARNESS_MARK = 24 };

/* Can the program be run by itself? A file of functions of a compiled language cannot. */
int harness_has_main(const json_t *artifact);
int harness_can(const char *language); /* can the harness call functions of this language? */
/* The files and the entry of a program with the call; borrowed documents are not changed. -1: calls
 * are not supported for this language, or the entry is missing. */
must_check int harness_call(const json_t *artifact, const char *call, const char *mark,
			    json_t **out_files, const char **out_entry, struct err *e);
/* The result in the output; NULL: it was not printed. */
const char *harness_answer(const char *said, size_t n, const char *mark, size_t *out_n);
/* Is it the expected value? 2 equals 2.0, and notations of lists are equivalent. */
int harness_same(const char *got, size_t n, const char *expected);
