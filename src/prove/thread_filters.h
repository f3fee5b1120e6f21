/* thread_filters.h - the seccomp filters of a thread, read from outside with PTRACE_SECCOMP_GET_FILTER.
 * Owns: the filters that were evaluated before; most threads have the same. Zero is an empty one. */
#pragma once
#include "prove/filter_eval.h"
#include <sys/types.h>

enum { THREAD_FILTERS = 16 };

struct thread_filters {
	struct thread_filter {
		struct sock_filter *code;
		unsigned len;
		struct filter_numbers native, other;
	} known[THREAD_FILTERS];
	unsigned n;
};

/* Stops the thread for a moment. The numbers of both tables that all its filters can let through; without a filter all.
 * -1: errno. ESRCH: it has ended. EPERM: another process traces it. EACCES: this process has a filter itself, or is not root. */
int thread_filters_read(struct thread_filters *f, pid_t tid, struct filter_numbers *native,
			struct filter_numbers *other);
void thread_filters_fini(struct thread_filters *f);
