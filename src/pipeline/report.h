/* report.h - the claims of a report: only observed results. Pure. */
#pragma once
#include "document/document.h"

/* Of a successful result: "verified", "examples_pass" or "plausible", and the reason in out_why.
 * Never "verified" for a program that was only checked with the given examples: that is
 * "examples_pass". */
const char *report_label(const json_t *plan, const json_t *artifact, const json_t *result,
			 const char **out_why);
/* The observations, one sentence each. */
json_t *report_evidence(const json_t *plan, const json_t *artifact, const json_t *result);
/* The output of the program in the last phase. */
const char *report_output(const json_t *result);
/* Do two runs of the same artifact have the same result? Times and memory are ignored. out_what:
 * the difference. */
int report_same(const json_t *a, const json_t *b, const char **out_what);
