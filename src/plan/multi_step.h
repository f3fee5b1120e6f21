/* multi_step.h - a task of several consecutive steps: "do this, then do that". */
#pragma once
#include "document/document.h"

enum { MULTI_STEP_MOST = 6 };

/* A plan with one program per step, all in one language, run in order in one folder; NULL: not such
 * a task, or a step is not understood alone, or needs the output of another step ("then sort it"):
 * library programs pass files, not output. one(): the plan of a single task. */
json_t *multi_step_make(const json_t *task, const char *language,
			json_t *(*one)(const json_t *task));
/* The program that runs those files, or NULL: none is known in this language. */
char *multi_step_runner(const char *language, const json_t *files, struct err *e);
