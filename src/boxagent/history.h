/* history.h - the actions of the agent and their results, for the next step of the model, within a
 * budget.
 * Owns: the turns. Old turns are first reduced to head and tail, then only counted. */
#pragma once
#include <jansson.h>
#include <stddef.h>

struct agent_history {
	size_t most;   /* bytes of all turns */
	json_t *turns; /* [{reply, result}], oldest first */
	unsigned dropped;
};
void agent_history_init(struct agent_history *m, size_t most);
void agent_history_add(struct agent_history *m, const json_t *action, const json_t *result);
void agent_history_fini(struct agent_history *m);
