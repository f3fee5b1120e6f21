/* child.h - a child of the warden's that serves fronts: started, introduced to them, missed, started again.
 * Owns: the process, and the link by which it is told and by which it sees us leave. */
#pragma once
#include "base/err.h"
#include <stdint.h>
#include <sys/types.h>

struct child {
	pid_t pid; /* 0: none */
	int link;  /* -1: none */
	uint64_t tried_ns;
};

/* be(ctx) is the process: its link is descriptor 3, nothing else of ours is open, signals for us are not for it. */
must_check int child_start(struct child *a, const char *name, void (*be)(void *ctx), void *ctx,
			   struct err *e);
void child_stop(struct child *a); /* it leaves when it has read that; reaped as nobody's */
/* 1: it was tried a moment ago, and not in a circle. */
int child_rests(const struct child *a);
int child_is(const struct child *a, pid_t pid);
/* Gives the ends of a pair to it and to a front, with a frame of that type. -1: there is none now. */
int child_hand(struct child *a, uint16_t type, int take_pair[2], int server_link);
