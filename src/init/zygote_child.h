/* zygote_child.h - a warm interpreter in this box that waits for its program.
 * Owns: its process while it waits, init's ends of its pipes, and the socket it listens on.
 * src/zygote/start_msg.h has the protocol on that socket. */
#pragma once
#include "wire/wire.h"

struct exec_args;
struct exec;

/* From the keeper, at most once. 0 or -errno. */
/* ... forked into the box from outside: take_fd is its socket's other end */
int zygote_child_take(const struct wire_zygote *w, int take_fd);
/* ... not yet ready: started by init */
int zygote_child_run(const struct wire_zygote *w, char **argv);
/* Runs this exec in it. 1: done; 0: there is none, or it does not match START. */
int zygote_child_start(struct exec *x, const struct wire_start *st, const struct exec_args *a);
int zygote_child_reaped(int pid); /* 1: it was the warm interpreter, and it was still waiting */
void zygote_child_end(
	void); /* the one that waits, if there is one: a later START executes its program */
