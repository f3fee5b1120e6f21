/* actions.h - executes an action as the user of the box, below the workspace.
 * Owns: the descriptor of the workspace. A failure is a result that a model can act upon. */
#pragma once
#include "boxagent/action.h"

#define ACTIONS_WORKSPACE "/home/user"
enum { ACTIONS_FILE = 4 << 20 }; /* bytes of a file that is read or edited */

struct actions {
	int workspace;
	const char *root;    /* its path */
	uint64_t command_ms; /* default timeout of a command */
	size_t result_bytes; /* of a result's text */
	unsigned timeouts;   /* consecutive commands over their time limit */
};
must_check int actions_init(struct actions *h, const char *root, struct err *e);
/* {ok, text, ...}, the caller's. */
json_t *actions_run(struct actions *h, const struct action *r);
void actions_fini(struct actions *h);
