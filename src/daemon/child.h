/* child.h - a child of the supervisor that works for servers: started, connected to them, and
 * started again when it ends.
 * Owns: the process, and the link by which it gets messages and notices the end of the
 * supervisor. */
#pragma once
#include "base/err.h"
#include <stdint.h>
#include <sys/types.h>

struct child {
	pid_t pid; /* 0: none */
	int link;  /* -1: none */
	uint64_t tried_ns;
};

/* be(ctx) is the main function of the process: its link is descriptor 3, no other descriptor of
 * the supervisor is open, and it has no signal handlers of the supervisor. */
must_check int child_start(struct child *a, const char *name, void (*be)(void *ctx), void *ctx,
			   struct err *e);
void child_stop(struct child *a); /* the child exits when it has read this; the supervisor reaps
				   * it as an unknown process */
/* 1: it was tried a moment ago, and not in a circle. */
int child_rests(const struct child *a);
int child_is(const struct child *a, pid_t pid);
/* Sends the ends of a pair to the child and to a server, with a frame of that type. -1: it does
 * not run now. */
int child_hand(struct child *a, uint16_t type, int take_pair[2], int server_link);
