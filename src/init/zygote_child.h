/* zygote_child.h - an interpreter in this box that waits to be told what to be.
 * Owns: its process while it waits, our ends of its pipes, and the socket it listens on.
 * How it is told is in src/seed/words.h. */
#pragma once
#include "wire/wire.h"

struct exec_args;
struct exec;

/* From the keeper, at most once. 0 or -errno. */
/* ... forked into the box from outside: take_fd is its socket's other end */
int seed_take(const struct wire_zygote *w, int take_fd);
/* ... not yet there: started by us */
int seed_run(const struct wire_zygote *w, char **argv);
/* Makes it this exec. 1: it is; 0: it is not there, or is not what START asks for. */
int seed_start(struct exec *x, const struct wire_start *st, const struct exec_args *a);
int seed_reaped(int pid); /* 1: that was it, and it was still waiting */
