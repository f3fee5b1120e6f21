/* action.h - a model's reply, taken strictly: one JSON object that is an action, or it is refused.
 * Owns: the document it was read from.
 *
 *	{"tool": "run_command", "args": {"command": "ls"}}
 *	{"done": true, "result": ...}
 *
 * No fence, no word around it, no member twice, no member that is not known. The complaint is
 * written for the model: it says what to do otherwise. */
#pragma once
#include "base/err.h"
#include "boxagent/agent_tools.h"

enum { ACTION_BYTES = 2 << 20, ACTION_DEPTH = 32, ACTION_NODES = 1 << 14 };

struct action {
	json_t *doc;
	int done;
	enum agent_tool kind;
	json_t *args, *result; /* of doc; NULL where it has none */
};

/* Is a text small enough to be parsed at all? Values and levels are counted, not read. */
must_check int action_modest(const char *text, size_t n, struct err *e);
/* allowed: a bit for each tool. */
must_check int action_parse(const char *text, size_t n, unsigned allowed, struct action *out,
			    struct err *e);
void action_fini(struct action *r); /* fine on a zeroed one */
