/* failure_facts.h - evidence about a failed run that does not depend on its output: kernel
 * counters, findings of the scan, errors of the package manager, failed checks. */
#pragma once
#include "debug/fix.h"

const json_t *facts_phase(const json_t *result); /* the failed check; NULL: there is none */
int facts_went_well(const json_t *phase); /* it exited with 0: its output is no error message */
/* Set category, name, why and evidence, or leave them. They return the names of fixes to try, or
 * NULL. */
const char *const *facts_kernel(struct failure_case *s);
const char *const *facts_checks(struct failure_case *s);
