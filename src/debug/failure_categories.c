/* failure_categories.c - the categories of failed runs. docs/errors.md contains the same table; debug_test compares
 * the two. */
#include "debug/debug.h"

#include <string.h>

const struct debug_category debug_categories[] = {
	/* clang-format off */
	{ "dependency_missing", "an import, header, gem, crate or module that does not exist",
	  "a file of the project: its path is corrected; a misspelled name of the standard library: renamed; otherwise the package is added",
	  "human", 0 },
	{ "interpreter_missing", "exit status 127 or 126, `bad interpreter`, `exec format error`",
	  "the language's own runtime is used; otherwise stop, with the reason", "human", 0 },
	{ "interpreter_wrong", "Python 2 in Python 3, an ES module as CommonJS or the other way round, TypeScript in a .js",
	  "the program is rewritten for the current version; the file's ending or the language is changed", "llm", 0 },
	{ "syntax", "an error message of a parser or compiler",
	  "one fix for: fences and prose around the code, typographic quotes, tabs, indentation, a missing `;` or `:`, unclosed brackets",
	  "llm", 0 },
	{ "truncated_code", "the text ends within a bracket, a string or an expression; `not implemented`",
	  "the complete text is requested", "llm", 0 },
	{ "name_error", "a name that is not defined",
	  "the import of a well-known name is added; a defined name one or two letters away is used", "llm", 0 },
	{ "entry_point", "no `main`, a class in a file of another name, a program that defines and calls nothing",
	  "the file, class, package or function is renamed; a call is added", "llm", 0 },
	{ "file_missing", "ENOENT for a path that the program names",
	  "a file of the project with that name: the path is corrected; otherwise its content is requested", "human", 0 },
	{ "permission", "EACCES, EPERM, a read-only file system",
	  "a path elsewhere becomes a path in the program's folder; the box never gets more permissions", "llm", 0 },
	{ "network_denied", "ENETUNREACH, ECONNREFUSED, EAI_AGAIN and similar errors; an install that cannot reach its source",
	  "reported; not retried", "no", 0 },
	{ "input_needed", "end of file when the program reads a line",
	  "the first example's input becomes stdin; otherwise the input is requested", "human", 0 },
	{ "port_in_use", "EADDRINUSE", "another port is used", "llm", 0 },
	{ "port_not_up", "a server that did not answer in time", "the time limit is raised once", "llm", 0 },
	{ "timeout_cpu", "time limit, and the processor was busy",
	  "the limit is raised once if there was output; otherwise search", "llm", 1 },
	{ "timeout_wall", "time limit, and the processor was idle",
	  "the limit is raised once if there was output; otherwise search", "llm", 1 },
	{ "deadlock", "a message of the runtime; or time limit, idle processor, and threads or locks in the program", "stop", "llm", 0 },
	{ "oom", "the kernel's memory events, an allocation that failed", "the memory limit is raised once", "llm", 0 },
	{ "disk_full", "the disk limit, ENOSPC", "stop", "llm", 0 },
	{ "pids", "the process limit, EAGAIN on fork", "stop", "llm", 0 },
	{ "crash", "SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS; a sanitizer's report",
	  "C and C++ are built with sanitizers once, to find the line; otherwise search", "llm", 1 },
	{ "type_error", "a value of the wrong type", "search, if there are examples or tests", "llm", 1 },
	{ "attribute", "a member or method that does not exist",
	  "a renamed or misspelled name is corrected; otherwise search", "llm", 1 },
	{ "index", "an index out of range", "search", "llm", 1 },
	{ "key", "a key that does not exist", "search", "llm", 1 },
	{ "value", "a value that a function rejects", "search", "llm", 1 },
	{ "zero_division", "a division by zero", "search", "llm", 1 },
	{ "overflow", "a number or a stack that grew too large", "search", "llm", 1 },
	{ "encoding", "bytes that are not valid in the encoding", "UTF-8 is set", "llm", 0 },
	{ "json_parse", "a text that is not JSON", "search", "llm", 1 },
	{ "assertion", "an assertion or a test that failed", "search", "llm", 1 },
	{ "wrong_output", "a check or an example differs", "search", "llm", 1 },
	{ "version_conflict", "incompatible versions, a name that exists only in another version",
	  "the current name is used; a version is pinned, or a pin is removed", "llm", 0 },
	{ "flaky", "the same run failed and passed", "reported; never reported as fixed", "human", 0 },
	{ "policy", "a rule of the scan, a system call that is not allowed", "reported; not retried", "no", 0 },
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
