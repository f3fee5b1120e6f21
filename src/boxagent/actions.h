/* actions.h - an action, done: as the box's user, below the workspace.
 * Owns: the workspace's descriptor. What goes wrong is a result that a model can act upon. */
#pragma once
#include "boxagent/action.h"

#define HANDS_WORKSPACE "/home/user"
enum { HANDS_FILE = 4 << 20 }; /* bytes of a file that is read or edited */

struct hands {
	int workspace;
	const char *root;    /* its path */
	uint64_t command_ms; /* of a command that says nothing else */
	size_t result_bytes; /* of a result's text */
	unsigned timeouts;   /* commands in a row that took too long */
};
must_check int hands_init(struct hands *h, const char *root, struct err *e);
/* {ok, text, ...}, the caller's. */
json_t *hands_do(struct hands *h, const struct action *r);
void hands_fini(struct hands *h);
