/* agent_tools.h - what an agent in a box may do: one table for its parser, its actions and its prompt.
 * Owns: nothing. Names and arguments are those of src/tools/tools.c, which has more tools. */
#pragma once
#include <jansson.h>
#include <stdint.h>

enum agent_tool {
	AGENT_TOOL_READ,
	AGENT_TOOL_WRITE,
	AGENT_TOOL_LIST,
	AGENT_TOOL_EDIT,
	AGENT_TOOL_RUN,
	AGENT_TOOL_COUNT
};

enum agent_tool_type { ARG_TEXT, ARG_INT, ARG_FLAG };
struct agent_tool_arg {
	const char *name;
	enum agent_tool_type type;
	int required;
	int64_t least, most; /* ARG_INT */
	const char *help;
};

enum { AGENT_TOOL_ARGS = 5 };
struct agent_tool_row {
	const char *name, *alias; /* alias: NULL, or the same under another name */
	const char *help;
	struct agent_tool_arg args[AGENT_TOOL_ARGS]; /* up to one without a name */
};
extern const struct agent_tool_row agent_tools[AGENT_TOOL_COUNT];

/* By either name; -1: there is none. */
int agent_tool_named(const char *name);
