/* debug.h - why a run did not pass, and what one bounded step would do about it.
 * Owns: the parsed rules (share/rules), for the life of the process. */
#pragma once
#include "document/document.h"

/* before: the diagnoses so far, an array. */
json_t *debug_make(const json_t *plan, const json_t *artifact, const json_t *result,
		   const json_t *before);

/* What can be wrong; docs/errors.md is this table. */
struct debug_category {
	const char *name;
	const char *evidence; /* how it is known */
	const char *done;     /* what is done about it */
	const char *fixable; /* by whom, where nothing of that was possible: "llm", "human", "no" */
	int search;          /* tests or examples can tell a better program: repair */
};
extern const struct debug_category debug_categories[]; /* ends with a name that is NULL */
int debug_category(const char *name);                  /* its index; -1: there is none */
