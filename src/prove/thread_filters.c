/* thread_filters.c - see thread_filters.h. */
#include "prove/thread_filters.h"
#include "base/cleanup.h"

#include <errno.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#ifndef PTRACE_SECCOMP_GET_FILTER
#define PTRACE_SECCOMP_GET_FILTER 0x420c
#endif

enum { STOP_TRIES = 4000, STOP_PAUSE_US = 500 };

static int thread_stop(pid_t tid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return -1;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0)
		for (unsigned i = 0; i < STOP_TRIES; i++) {
			if (waitpid(tid, &status, __WALL | WNOHANG) == tid) {
				errno = ESRCH;
				return WIFSTOPPED(status) ? 0 : -1;
			}
			usleep(STOP_PAUSE_US);
		}
	ptrace(PTRACE_DETACH, tid, NULL, NULL);
	errno = ETIMEDOUT;
	return -1;
}

/* Takes code. The result is valid until the next call. */
static const struct thread_filter *thread_filter_evaluate(struct thread_filters *f,
							  struct sock_filter *take_code,
							  unsigned len)
{
	struct thread_filter *k;

	for (unsigned i = 0; i < f->n; i++)
		if (f->known[i].len == len &&
		    !memcmp(f->known[i].code, take_code, len * sizeof(*take_code))) {
			free(take_code);
			return &f->known[i];
		}
	if (f->n == THREAD_FILTERS)
		free(f->known[--f->n].code);
	k = &f->known[f->n++];
	*k = (struct thread_filter){ .code = take_code, .len = len };
	filter_numbers_all(&k->native);
	filter_numbers_all(&k->other);
	filter_eval_reduce(take_code, len, filter_native_arch, &k->native);
	filter_eval_reduce(take_code, len, filter_other_arch, &k->other);
	return k;
}

static void thread_filter_intersect(struct filter_numbers *io, const struct filter_numbers *with)
{
	for (unsigned i = 0; i < ARRAY_LEN(io->bits); i++)
		io->bits[i] &= with->bits[i];
}

/* The thread is stopped. */
static int thread_filters_all(struct thread_filters *f, pid_t tid, struct filter_numbers *native,
			      struct filter_numbers *other)
{
	filter_numbers_all(native);
	filter_numbers_all(other);
	for (unsigned long i = 0;; i++) {
		long len = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)i, NULL);
		const struct thread_filter *k;
		struct sock_filter *code;

		if (len < 0) /* no more; or none at all */
			return errno == ENOENT || (errno == EINVAL && !i) ? 0 : -1;
		code = calloc((size_t)len + 1, sizeof(*code));
		if (!code)
			abort();
		if (ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)i, code) < 0) {
			free(code);
			return -1;
		}
		k = thread_filter_evaluate(f, code, (unsigned)len);
		thread_filter_intersect(native, &k->native);
		thread_filter_intersect(other, &k->other);
	}
}

int thread_filters_read(struct thread_filters *f, pid_t tid, struct filter_numbers *native,
			struct filter_numbers *other)
{
	int rc, was;

	if (thread_stop(tid) < 0)
		return -1;
	rc = thread_filters_all(f, tid, native, other);
	was = errno;
	ptrace(PTRACE_DETACH, tid, NULL, NULL);
	errno = was;
	return rc;
}

void thread_filters_fini(struct thread_filters *f)
{
	for (unsigned i = 0; i < f->n; i++)
		free(f->known[i].code);
	f->n = 0;
}
