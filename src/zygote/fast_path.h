/* fast_path.h - what nearly every child goes through, by the shortest way.
 * Owns: the objects it takes hold of in the zygote.
 *
 * A look at an object is a count in it, and in a fork a copied page; a function written in Python is
 * hundreds of looks. So the usual ways are here, and python.py has all of them. */
#pragma once
#include "zygote/cpython.h"
#include <stdint.h>

/* In the zygote, behind settle(). seed: the dictionary of python.py. */
void fast_path_learn(object *seed);
/* All that a fork has to do here. The interpreter's own hooks are about threads, of which there was one,
 * and it lives on: nobody holds a lock. */
void fast_path_reseed(void);
/* 1: these are the words that the zygote assumed, and all is as they say. */
int fast_path_start(const char *words, uint32_t len);
/* 1: there is nothing at this end but what fast_path_leave() does. */
int fast_path_end(void);
int fast_path_leave(int status);
