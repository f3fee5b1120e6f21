/* tool.h - starts a program of the host for the preparation of a tier and waits for its end.
 * Owns: the process, with a time limit. It gets no descriptor but its output, a constant
 * environment, and no way to gain privileges. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <stdint.h>

enum { TOOL_UID = 65534 };

/* Its output, at most `most` bytes. A status other than 0 is an error with its first line. */
must_check int host_tool_output(const char *const *argv, struct buf *out, size_t most,
				struct err *e);

/* Without privileges: as `uid` (if this process is root). keep: descriptor that becomes number 3 of
 * the program, or -1. */
must_check int host_tool_run_as(const char *const *argv, uint32_t uid, int keep, unsigned timeout_s,
				struct err *e);
