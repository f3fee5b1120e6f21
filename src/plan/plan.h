/* plan.h - what a task asks for: one of the library, or code that was given, or a question.
 * Owns: nothing. No model, no clock, no box: the same task gives the same plan. */
#pragma once
#include "document/document.h"

/* A plan. It may ask (inputs_needed) or say that it did not understand (not_understood). */
json_t *plan_make(const json_t *task);
