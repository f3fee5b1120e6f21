/* failure_categories.c - what can be wrong with a run. docs/errors.md is this table: debug_test compares them. */
#include "debug/debug.h"

#include <string.h>

const struct debug_category debug_categories[] = {
	/* clang-format off */
	{ "dependency_missing", "an import, header, gem, crate or module that is not there",
	  "a file of the project: its path is put right; a name of the standard library, mistyped: renamed; else the package is added",
	  "human", 0 },
	{ "interpreter_missing", "exit status 127 or 126, `bad interpreter`, `exec format error`",
	  "the language's own runtime is used; else it is said", "human", 0 },
	{ "interpreter_wrong", "Python 2 in Python 3, an ES module as CommonJS or the other way round, TypeScript in a .js",
	  "rewritten for today's version; the file's ending or the language is changed", "llm", 0 },
	{ "syntax", "a parser's or compiler's complaint",
	  "one of: fences and prose around the code, typographic quotes, tabs, indentation, a missing `;` or `:`, brackets left open",
	  "llm", 0 },
	{ "truncated_code", "the text ends within a bracket, a string or an expression; `not implemented`",
	  "the whole text is asked for", "llm", 0 },
	{ "name_error", "a name that nothing defines",
	  "the import of a well-known name is added; a name one or two letters away is taken", "llm", 0 },
	{ "entry_point", "no `main`, a class in a file of another name, a program that defines and calls nothing",
	  "the file, class, package or function is renamed; a call is added", "llm", 0 },
	{ "file_missing", "ENOENT for a path that the program names",
	  "a file of the project with that name: the path is put right; else its content is asked for", "human", 0 },
	{ "permission", "EACCES, EPERM, a read-only file system",
	  "a path elsewhere becomes one in the program's folder; the box is never loosened", "llm", 0 },
	{ "network_denied", "ENETUNREACH, ECONNREFUSED, EAI_AGAIN and the like; an install that reaches nobody",
	  "said; not tried again", "no", 0 },
	{ "input_needed", "end of file where a line was read",
	  "the first example's input becomes stdin; else it is asked for", "human", 0 },
	{ "port_in_use", "EADDRINUSE", "another port is taken", "llm", 0 },
	{ "port_not_up", "a server that did not answer in time", "the time limit is raised once", "llm", 0 },
	{ "timeout_cpu", "time limit, and the processor was busy",
	  "raised once if there was output; else search", "llm", 1 },
	{ "timeout_wall", "time limit, and the processor was idle",
	  "raised once if there was output; else search", "llm", 1 },
	{ "deadlock", "a runtime says so; time limit, idle, and there are threads or locks", "stop", "llm", 0 },
	{ "oom", "the kernel's memory events, an allocation that failed", "the memory limit is raised once", "llm", 0 },
	{ "disk_full", "the disk limit, ENOSPC", "stop", "llm", 0 },
	{ "pids", "the limit of processes, EAGAIN on fork", "stop", "llm", 0 },
	{ "crash", "SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS; a sanitizer's report",
	  "C and C++ are built with sanitizers once, to learn the line; else search", "llm", 1 },
	{ "type_error", "a value of the wrong type", "search, where examples or tests tell", "llm", 1 },
	{ "attribute", "a member or method that is not there",
	  "one that was renamed or mistyped is put right; else search", "llm", 1 },
	{ "index", "an index out of range", "search", "llm", 1 },
	{ "key", "a key that is not there", "search", "llm", 1 },
	{ "value", "a value that a function refuses", "search", "llm", 1 },
	{ "zero_division", "a division by zero", "search", "llm", 1 },
	{ "overflow", "a number or a stack that grew too large", "search", "llm", 1 },
	{ "encoding", "bytes that are no text in the encoding", "UTF-8 is set", "llm", 0 },
	{ "json_parse", "a text that is no JSON", "search", "llm", 1 },
	{ "assertion", "an assertion or a test that failed", "search", "llm", 1 },
	{ "wrong_output", "a check or an example differs", "search", "llm", 1 },
	{ "version_conflict", "versions that do not go together, a name that another version has",
	  "today's name is taken; a version is pinned, or a pin dropped", "llm", 0 },
	{ "flaky", "the same run failed and passed", "said; never called fixed", "human", 0 },
	{ "policy", "a scan's rule, a system call that is not allowed", "said; not tried again", "no", 0 },
	{ "unknown", "none of these", "stop, with its last 40 lines", "llm", 1 },
	{ NULL, NULL, NULL, NULL, 0 },
	/* clang-format on */
};

int debug_category(const char *name)
{
	for (int i = 0; debug_categories[i].name; i++)
		if (!strcmp(debug_categories[i].name, name))
			return i;
	return -1;
}
