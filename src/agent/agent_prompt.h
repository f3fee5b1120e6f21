/* agent_prompt.h - the prompt of the model that drives the agent of a box: rules, task, history.
 * Owns: nothing. Pure: text of a box is inserted as data between marks, never as rules. */
#pragma once
#include "base/err.h"
#include "boxagent/agent_tools.h"

enum { AGENT_PROMPT_MARK = 12, AGENT_PROMPT_TURNS = 256 };

struct agent_prompt {                /* borrowed */
	const char *task, *mark;     /* mark: a random word, unknown to the box */
	const json_t *files;         /* NULL, or an object whose names are listed */
	unsigned allowed, max_steps; /* allowed: a bit for each tool */
	uint64_t command_ms;
};

/* The texts and messages of a request, {system, messages}. ask: the question of the box, untrusted;
 * -1: an invalid question. */
must_check int agent_prompt_make(const struct agent_prompt *b, const json_t *ask, json_t **out,
				 struct err *e);
