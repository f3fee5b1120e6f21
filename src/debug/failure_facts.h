/* failure_facts.h - what is known about a failed run without reading what it said: what the kernel saw, what the
 * scan and the package manager refused, which checks did not hold. */
#pragma once
#include "debug/fix.h"

const json_t *facts_phase(const json_t *result); /* the one that failed; NULL: there is none */
int facts_went_well(
	const json_t *phase); /* it ended by itself, with 0: what it said is no complaint */
/* Fill in category, name, why and evidence, or leave them. They return names of steps to try, or NULL. */
const char *const *facts_kernel(struct failure_case *s);
const char *const *facts_checks(struct failure_case *s);
