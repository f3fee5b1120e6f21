/* thread_list.h - threads of a process, and instructions in its memory, read from /proc. */
#pragma once
#include "procimage/arch.h"

struct err;

/* Number of threads; more than `most` is an error. */
int thread_list_read(pid_t pid, pid_t *tids, unsigned most, struct err *e);
/* Instructions for calls, and the lowest address of the main stack. */
int thread_list_find_code(pid_t pid, int memory, struct arch_code *code, uint64_t *out_stack,
			  struct err *e);
