/* debug.h - diagnoses why a run did not pass, and proposes one bounded fix.
 * Owns: the parsed rules (share/rules), for the life of the process. */
#pragma once
#include "document/document.h"

/* before: the diagnoses so far, an array. */
json_t *debug_make(const json_t *plan, const json_t *artifact, const json_t *result,
		   const json_t *before);

/* The failure categories; docs/errors.md has this table. */
struct debug_category {
	const char *name;
	const char *evidence; /* the evidence for it */
	const char *done;     /* its fixes */
	const char *fixable;  /* what else can fix it: "llm", "human", "no" */
	int search;           /* tests or examples can select a better program: repair */
};
extern const struct debug_category debug_categories[]; /* ends with a name that is NULL */
int debug_category(const char *name);                  /* its index; -1: there is none */
