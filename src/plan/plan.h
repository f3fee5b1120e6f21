/* plan.h - makes a plan for a task: a library task, given code, or a question.
 * Owns: nothing. No model, no clock, no box: the same task gives the same plan. */
#pragma once
#include "document/document.h"

/* Returns a plan. It may have a question (inputs_needed) or the reason why it was not understood
 * (not_understood). */
json_t *plan_make(const json_t *task);
