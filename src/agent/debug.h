/* debug.h - why a run did not pass, and what one bounded step would do about it.
 * Owns: the parsed rules (src/agent/rules), for the life of the process. */
#pragma once
#include "agent/agent.h"

/* before: the diagnoses so far, an array. */
json_t *debug_make(const json_t *plan, const json_t *artifact, const json_t *result,
		   const json_t *before);
