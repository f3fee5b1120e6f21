/* clone.h - clone3() for a child with a stack of its own; glibc has no wrapper. */
#pragma once
#include <stddef.h>

struct clone_args;

/* The child calls fn(arg) and exits with its result. Returns the child's pid or -errno. */
long clone3_call(struct clone_args *args, size_t size, int (*fn)(void *), void *arg);
