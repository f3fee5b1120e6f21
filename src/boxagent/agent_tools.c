/* agent_tools.c - see agent_tools.h. */
#include "boxagent/agent_tools.h"

#include <string.h>

enum { LINES = INT32_MAX, MS_MOST = 600000 };

const struct agent_tool_row agent_tools[AGENT_TOOL_COUNT] = {
	/* clang-format off */
	[AGENT_TOOL_READ] = { "read_file", "ReadFile", "read a text file, or some lines of it",
		{ { "path", ARG_TEXT, 1, 0, 0, "below the workspace" },
		  { "start_line", ARG_INT, 0, 1, LINES, "first line; 1" },
		  { "end_line", ARG_INT, 0, 1, LINES, "last line" } } },
	[AGENT_TOOL_WRITE] = { "write_file", "WriteFile", "write a whole text file; folders are made",
		{ { "path", ARG_TEXT, 1, 0, 0, "below the workspace" },
		  { "content", ARG_TEXT, 1, 0, 0, "all of its text" } } },
	[AGENT_TOOL_LIST] = { "list_files", NULL, "list a folder; folders end with a slash",
		{ { "path", ARG_TEXT, 0, 0, 0, "the workspace" },
		  { "depth", ARG_INT, 0, 1, 16, "levels of folders; 1" },
		  { "limit", ARG_INT, 0, 1, 10000, "entries at most; 1000" } } },
	[AGENT_TOOL_EDIT] = { "edit_file", NULL, "replace a text that is in a file exactly once",
		{ { "path", ARG_TEXT, 1, 0, 0, "below the workspace" },
		  { "old_str", ARG_TEXT, 1, 0, 0, "exactly as it is in the file" },
		  { "new_str", ARG_TEXT, 1, 0, 0, "what it becomes" },
		  { "replace_all", ARG_FLAG, 0, 0, 0, "every place, not the only one" } } },
	[AGENT_TOOL_RUN] = { "run_command", "RunTerminalCommand", "run a line of bash and wait for its end",
		{ { "command", ARG_TEXT, 1, 0, 0, "at most 64 KiB; each has a new shell" },
		  { "cwd", ARG_TEXT, 0, 0, 0, "folder below the workspace" },
		  { "timeout_ms", ARG_INT, 0, 1, MS_MOST, "it is ended then" } } },
	/* clang-format on */
};

int agent_tool_named(const char *name)
{
	for (int i = 0; i < AGENT_TOOL_COUNT; i++)
		if (!strcmp(name, agent_tools[i].name) ||
		    (agent_tools[i].alias && !strcmp(name, agent_tools[i].alias)))
			return i;
	return -1;
}
