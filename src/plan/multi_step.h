/* multi_step.h - a task that is several, one behind the other: "do this, then do that". */
#pragma once
#include "document/document.h"

enum { MULTI_STEP_MOST = 6 };

/* A plan of a program per step, all in one language, run in their order in one folder; NULL: it is none
 * of those, or a step is not understood by itself, or takes what another one only says ("then sort it"):
 * programs of the library hand on files, not what they print. one(): the plan of a single task. */
json_t *multi_step_make(const json_t *task, const char *language,
			json_t *(*one)(const json_t *task));
/* The program that runs those files, or NULL: none is known in this language. */
char *multi_step_runner(const char *language, const json_t *files, struct err *e);
