/* capture.c - see capture.h. */
#include "procimage/capture.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "procimage/keep.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t capture_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static int capture_compare_threads(const void *a, const void *b)
{
	const struct tracee_thread *x = a, *y = b;

	return x->state.tid < y->state.tid ? -1 : x->state.tid > y->state.tid;
}

/* The leader first: its tid is the pid. The others in order of tids. */
static int capture_sort_threads(struct tracee *t, struct err *e)
{
	qsort(t->threads, t->nthreads, sizeof(*t->threads), capture_compare_threads);
	for (unsigned i = 0; i < t->nthreads; i++)
		if (t->threads[i].state.tid == t->pid) {
			struct tracee_thread leader = t->threads[i];

			memmove(t->threads + 1, t->threads, i * sizeof(*t->threads));
			t->threads[0] = leader;
			return 0;
		}
	return err_set(e, ERR_CONFLICT, "the first thread of process %d has ended", t->pid);
}

static int capture_check_threads(struct capture *c, struct err *e)
{
	for (unsigned i = 0; i < c->tracee.nthreads; i++) {
		struct tracee_thread *th = &c->tracee.threads[i];
		const char *why = arch_refuse(&th->state, th->vector);

		if (why)
			return keep_refuse(e, KEEP_REGISTERS, c->tracee.pid, -1, why);
	}
	return 0;
}

static void capture_add_threads(struct capture *c)
{
	struct tracee *t = &c->tracee;
	struct image_thread *to = procimage_add(&c->image, TABLE_THREADS, t->nthreads);

	for (unsigned i = 0; i < t->nthreads; i++) {
		uint64_t at = c->image.table[TABLE_VECTORS].count;
		uint64_t room = ((uint64_t)t->threads[i].state.vector_bytes + 63) & ~UINT64_C(63);

		to[i] = t->threads[i].state;
		to[i].tid = t->threads[i].inner_tid;
		arch_restart_call(to[i].registers);
		to[i].vector_at = at;
		memcpy(procimage_add(&c->image, TABLE_VECTORS, room), t->threads[i].vector,
		       to[i].vector_bytes);
	}
}

/* A descendant: everything is read while it is stopped. */
static int capture_read_direct(struct capture *c, struct err *e)
{
	return capture_ask_child(c, e) < 0 || capture_read_flags(c, e) < 0 ||
			       capture_copy_pages(c, e) < 0
		       ? -1
		       : 0;
}

int capture_read(struct capture *c, const struct capture_options *o, struct err *e)
{
	struct tracee *t = &c->tracee;

	c->options = *o;
	if (capture_sort_threads(t, e) < 0 || capture_check_threads(c, e) < 0 ||
	    tracee_prepare_calls(t, e) < 0 || capture_read_program(c, o, e) < 0 ||
	    capture_read_areas(c, e) < 0 || capture_read_descriptors(c, o, e) < 0)
		return -1;
	for (unsigned i = 0; i < t->nthreads; i++)
		if (tracee_ask_thread(t, &t->threads[i], e) < 0)
			return -1;
	if (o->direct ? capture_read_direct(c, e) < 0
		      : tracee_fork(t, e) < 0 || capture_save_unforked(c, e) < 0)
		return -1;
	capture_add_threads(c);
	return 0;
}

int capture_stop(struct capture *c, pid_t pid, const struct capture_options *o, struct err *e)
{
	*c = (struct capture){ .tracee.memory = -1, .options = *o, .pages = -1 };
	procimage_init(&c->image);
	c->began_us = capture_now_us();
	if (tracee_stop(&c->tracee, pid, o->timeout_ms ? o->timeout_ms : 2000, e) == 0)
		return 0;
	capture_fini(c);
	return -1;
}

int capture_hold(struct capture *c, pid_t pid, const struct capture_options *o, struct err *e)
{
	struct err ignored;

	if (capture_stop(c, pid, o, e) < 0)
		return -1;
	if (capture_read(c, o, e) == 0 && capture_relate(&c, 1, e) == 0)
		return 0;
	(void)!capture_release(c, &ignored);
	capture_fini(c);
	return -1;
}

int capture_release(struct capture *c, struct err *e)
{
	int rc = tracee_release(&c->tracee, e);

	c->stopped_us = (unsigned)(capture_now_us() - c->began_us);
	return rc;
}

int capture_complete(struct capture *c, struct err *e)
{
	if (!c->options.direct &&
	    (capture_restore_unforked(c, e) < 0 || capture_ask_child(c, e) < 0 ||
	     capture_read_flags(c, e) < 0 || capture_read_runs(c, e) < 0))
		return -1;
	if (procimage_check(&c->image, e) < 0)
		return -1;
	c->took_us = (unsigned)(capture_now_us() - c->began_us);
	return 0;
}

int capture_take(struct capture *c, pid_t pid, const struct capture_options *o, struct err *e)
{
	if (capture_hold(c, pid, o, e) < 0)
		return -1;
	if (capture_release(c, e) == 0 && capture_complete(c, e) == 0)
		return 0;
	capture_fini(c);
	return -1;
}

void capture_fini(struct capture *c)
{
	tracee_fini(&c->tracee);
	for (unsigned i = 0; i < c->nsaved; i++)
		free(c->saved[i].content);
	free(c->saved);
	free(c->descriptions);
	procimage_fini(&c->image);
	own_close_fd(&c->pages);
	*c = (struct capture){ .tracee.memory = -1, .pages = -1 };
}

pid_t capture_memory_pid(const struct capture *c)
{
	return c->options.direct ? c->tracee.pid : c->tracee.child_pid;
}
