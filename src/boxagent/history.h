/* history.h - what the agent did and what came of it, for the model's next step, within a budget.
 * Owns: the turns. What does not fit any more is first cut to its head and tail, then counted. */
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
