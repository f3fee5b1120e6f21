/* fast_path.h - the common case of start and exit of a child, in C.
 * Owns: the objects it references in the zygote. Access to an object changes its reference count,
 * which copies a page in a fork; a Python function does this hundreds of times. So the common cases
 * are here, and python.py handles all of them. */
#pragma once
#include "zygote/cpython.h"
#include <stdint.h>

/* In the zygote, after settle(). module: the dictionary of python.py. */
void fast_path_learn(object *module);
/* The work after a fork. The hooks of the interpreter are for threads; there was only one, which
 * continues, so no lock is held. */
void fast_path_reseed(void);
/* 1: the start message is the one that the zygote assumed, and its conditions hold. */
int fast_path_start(const char *words, uint32_t len);
/* 1: this exit needs only fast_path_leave(). */
int fast_path_end(void);
int fast_path_leave(int status);
