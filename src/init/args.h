/* args.h - the strings of a START: cwd, argv..., env... as execve needs them.
 * Borrows the frame's tail; owns one mapping when the strings came in a memfd or are many. */
#pragma once
#include "wire/wire.h"
#include <stddef.h>

enum { ARGS_MOST = 8 << 20 }; /* bytes of strings */

struct exec_args {
	const char *cwd;
	char **argv, **env;
	void *map;
	size_t map_bytes;
};

/* -EINVAL: they do not match the counts. -E2BIG, -ENOMEM: valid, but too much. memfd: -1 or its
 * number. */
int args_init(struct exec_args *a, const struct wire_start *st, char *tail, size_t tail_len,
	      int memfd);
void args_fini(struct exec_args *a);
