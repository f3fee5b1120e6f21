/* action.h - parses the reply of a model strictly: one JSON object that is an action, or it is
 * rejected.
 * Owns: the document it was read from.
 *
 * {"tool": "run_command", "args": {"command": "ls"}}
 * {"done": true, "result": ...}
 *
 * No fence, no text around it, no duplicate or unknown member. The error message is for the model:
 * it explains what to change. */
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

/* Is a text small enough to be parsed? Counts values and levels without parsing. */
must_check int action_modest(const char *text, size_t n, struct err *e);
/* allowed: a bit for each tool. */
must_check int action_parse(const char *text, size_t n, unsigned allowed, struct action *out,
			    struct err *e);
void action_fini(struct action *r); /* fine on a zeroed one */
