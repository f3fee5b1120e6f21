/* shell.h - one command of the agent: started, read, ended in time.
 * Owns: its process group while it runs. A background program keeps running, but its output is not
 * read. */
#pragma once
#include "base/err.h"
#include "boxagent/short_text.h"

enum { SHELL_COMMAND = 64 * 1024 };

struct shell_end {
	int timed_out;
	int status; /* of wait(2) */
	uint64_t ms;
};
/* dir: the working directory. Both output streams are added to out, whose `most` is set. */
must_check int shell_run(int dir, const char *command, uint64_t timeout_ms, struct head_tail *out,
			 struct shell_end *end, struct err *e);
