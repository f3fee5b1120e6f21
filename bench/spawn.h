/* spawn.h - runs another program and waits for it, with the lowest overhead.
 * vfork() and not fork(): the overhead must not depend on the size of the benchmark. */
#pragma once
#include "base/err.h"
#include <stddef.h>

struct spawn {
	const char *path;        /* absolute: no search in PATH is measured */
	const char *const *argv; /* NULL-terminated */
	int quiet;               /* stdin and stdout on /dev/null, stderr kept for spawn_reason() */
	const char *variable;    /* NAME=VALUE, added to the environment; or NULL */
	int mnt_ns;              /* enter this mount namespace first; -1: stay */
};

/* Once, before the first spawn. */
must_check int spawn_setup(struct err *e);
/* Fails also when the program ends with anything but 0. */
must_check int spawn_wait(const struct spawn *sp, struct err *e);
/* The first line the program prints, on either stream; "" if it prints none. */
void spawn_first_line(const char *path, const char *const *argv, char *out, size_t size);
/* The absolute path of an installed program. */
must_check int spawn_find(const char *name, char *out, size_t size, struct err *e);
