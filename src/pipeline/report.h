/* report.h - what may be said about a run: nothing that was not seen. Pure. */
#pragma once
#include "document/document.h"

/* Of a result that has success: "verified", "examples_pass" or "plausible", and out_why says why. Never "verified" for a
 * program that nobody searched for or checked beyond what was given: that is "examples_pass". */
const char *report_label(const json_t *plan, const json_t *artifact, const json_t *result,
			 const char **out_why);
/* What was seen, a sentence each. */
json_t *report_evidence(const json_t *plan, const json_t *artifact, const json_t *result);
/* What the program said, of the last phase that ran. */
const char *report_output(const json_t *result);
/* Did two runs of the same artifact come to the same? Times and memory do not count. out_what:
 * where not. */
int report_same(const json_t *a, const json_t *b, const char **out_what);
