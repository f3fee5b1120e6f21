/* net.h - the network of a box: a namespace with lo in it, and nothing else.
 * Owns:         how one is made before its box, and the check that one is unused.
 * Does not own: the list of waiting ones; the keeper's netns_pool.c keeps them.
 *
 * A namespace that is made here belongs to the host's user namespace: no process of a box has
 * any right over it, its own root included. So it can be given to another box, if nothing of the
 * first is left in it. docs/sandbox.md lists what could be left, row by row. */
#pragma once
#include "base/err.h"
#include <stddef.h>

enum { NET_TEXT = 16384, NET_ROWS = 9 };

struct net_text { /* all that the files of a namespace contain */
	size_t len;
	char bytes[NET_TEXT];
};

/* A descriptor of a new namespace, lo up; every user may bind every port, because the box is alone
 * in it. proc: the host's. The calling thread, and no other, is in the new namespace for a
 * moment. */
must_check int net_make(int proc, struct err *e);
/* Calls this function in that namespace; inside: a descriptor of the namespace, valid during the
 * call. ns: a descriptor of the namespace, or a pidfd of a process in it. */
must_check int net_run_inside(int proc, int ns, int (*call)(void *ctx, int inside, struct err *e),
			      void *ctx, struct err *e);
/* The files of a namespace, open: they show that namespace, wherever the thread is. */
struct net_files {
	int fd[NET_ROWS];
};
must_check int net_open(int proc, int ns, struct net_files *out, struct err *e);
void net_close(struct net_files *f);
must_check int net_look(const struct net_files *f, struct net_text *out, struct err *e);
must_check int net_read(int proc, int ns, struct net_text *out, struct err *e); /* all three */
int net_same(const struct net_text *a, const struct net_text *b);

/* The files of /proc/net that are read: they show what a box could leave. */
struct net_row {
	const char *file, *why;
};
extern const struct net_row net_rows[NET_ROWS];
