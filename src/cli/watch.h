/* watch.h - runs a function again whenever files change.
 * Owns: the inotify descriptor, and the process that runs the function. */
#pragma once
#include "cli/cli_error.h"
#include <stddef.h>

struct watch_files {
	const char *const *files; /* NULL-terminated */
	const char *folder;       /* with all below it, or NULL */
	const char *ignore;       /* a file that this process writes, or NULL */
};

/* once() runs in a process of its own, which is ended when a file changes meanwhile. Returns
 * after a signal to stop: the status of the last run. */
int watch_loop(const struct watch_files *w, int (*once)(void *ctx), void *ctx, int quiet,
	       struct err *e);
