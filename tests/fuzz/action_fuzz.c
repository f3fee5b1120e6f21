/* action_fuzz.c - a model's reply: it is an action of the table, or it is rejected with a reason. */
#include "fuzz.h"
#include "boxagent/action.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct action a;
	struct err e;

	if (action_parse((const char *)bytes, len, (1u << AGENT_TOOL_COUNT) - 1, &a, &e) < 0) {
		assert(!a.doc && e.msg[0]);
		return 0;
	}
	assert(a.done ? a.result != NULL : a.kind < AGENT_TOOL_COUNT && json_is_object(a.args));
	action_fini(&a);
	return 0;
}
