/* plan.c - see plan.h. */
#include "procimage/plan.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#if defined(__x86_64__)
#include <asm/prctl.h>
#endif

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

static uint64_t plan_string(const struct image *im, struct call_data *d, uint32_t string)
{
	const char *s = image_string(im, string);

	return call_data_add(d, s, strlen(s) + 1, 1);
}

/* ---- memory that is not shared with other copies ---- */

static void plan_add_file_area(const struct image *im, const struct image_area *a,
			       struct call_list *l, struct call_data *d)
{
	uint64_t path = plan_string(im, d, image_files(im)[a->file].path);
	struct restorer_call *c;

	c = CALL(l, SYS_openat, RESTORER_SUCCEED, (uint64_t)-100, path,
		 a->prot & PROT_WRITE ? 02 : 0);
	c->save = RESTORER_OUTSIDE + 1;
	c = CALL(l, SYS_mmap, RESTORER_EQUAL, a->start, a->end - a->start, a->prot,
		 MAP_SHARED | MAP_FIXED, RESTORER_OUTSIDE, a->offset);
	c->expect = a->start;
	c->from_slot = 1 << 4;
	CALL(l, SYS_close, RESTORER_SUCCEED, RESTORER_OUTSIDE)->from_slot = 1;
}

/* The content lies as private memory at the same place: it goes into the memory that all processes of the tree
 * share. */
static void plan_fill_shared(const struct image *im, const struct image_area *a, uint64_t fd,
			     struct call_list *l)
{
	uint64_t page = im->header.page_bytes;

	for (uint64_t i = 0; i < im->header.count[TABLE_RUNS]; i++) {
		const struct image_run *r = &image_runs(im)[i];
		uint64_t from = r->start, to = r->start + r->pages * page;

		if (from >= a->end)
			return;
		from = from < a->start ? a->start : from;
		to = to > a->end ? a->end : to;
		if (from < to)
			CALL(l, SYS_pwrite64, RESTORER_EQUAL, fd, from, to - from,
			     from - a->start + a->at_page * page)
				->expect = to - from;
	}
}

static void plan_add_shared_area(const struct plan_tree *t, const struct image *im,
				 const struct image_area *a, struct call_list *l)
{
	uint64_t fd = (uint64_t)plan_find_shared(t, a->offset);

	if (!(a->flags & AREA_ELSEWHERE))
		plan_fill_shared(im, a, fd, l);
	CALL(l, SYS_mmap, RESTORER_EQUAL, a->start, a->end - a->start, a->prot,
	     MAP_SHARED | MAP_FIXED, fd, a->at_page * (uint64_t)im->header.page_bytes)
		->expect = a->start;
}

static void plan_add_memory(const struct plan_tree *t, const struct image *im, struct call_list *l,
			    struct call_data *d)
{
	l->step = STEP_MEMORY;
	for (uint64_t i = 0; i < im->header.count[TABLE_AREAS]; i++) {
		const struct image_area *a = &image_areas(im)[i];

		if (a->kind == AREA_FILE_SHARED)
			plan_add_file_area(im, a, l, d);
		if (a->kind == AREA_SHARED)
			plan_add_shared_area(t, im, a, l);
		if (a->flags & AREA_DONT_FORK)
			CALL(l, SYS_madvise, RESTORER_SUCCEED, a->start, a->end - a->start,
			     MADV_DONTFORK);
		if (a->flags & AREA_WIPE_ON_FORK)
			CALL(l, SYS_madvise, RESTORER_SUCCEED, a->start, a->end - a->start,
			     MADV_WIPEONFORK);
	}
}

/* ---- the program ---- */

static void plan_add_signals(const struct image *im, struct call_list *l, struct call_data *d)
{
	const struct image_program *p = image_program(im);

	l->step = STEP_SIGNALS;
	for (unsigned i = 0; i < IMAGE_SIGNALS; i++)
		if (i + 1 != SIGKILL && i + 1 != SIGSTOP)
			CALL(l, SYS_rt_sigaction, RESTORER_SUCCEED, i + 1,
			     call_data_add(d, &p->actions[i], sizeof(p->actions[i]), 8), 0, 8);
}

static void plan_add_limits(const struct image *im, struct call_list *l, struct call_data *d)
{
	const struct image_program *p = image_program(im);

	l->step = STEP_LIMITS;
	/* A limit above that of the box stays as the box has it. */
	for (uint64_t i = 0; i < IMAGE_LIMITS; i++)
		CALL(l, SYS_prlimit64, RESTORER_IGNORE, 0, i, call_data_add(d, p->limits[i], 16, 8),
		     0);
}

void plan_add_program(const struct plan_tree *t, const struct image *im, struct call_list *l,
		      struct call_data *d)
{
	const struct image_program *p = image_program(im);

	l->step = STEP_PROGRAM;
	CALL(l, SYS_prctl, RESTORER_IGNORE, PR_SET_DUMPABLE, p->dumpable == 1);
	plan_add_memory(t, im, l, d);
	l->step = STEP_FOLDER;
	CALL(l, SYS_umask, RESTORER_IGNORE, p->umask);
	CALL(l, SYS_chdir, RESTORER_SUCCEED, plan_string(im, d, p->folder));
	plan_add_descriptors(t, im, l, d);
	plan_add_limits(im, l, d);
	plan_add_signals(im, l, d);
}

/* ---- threads ---- */

static void plan_add_pending(uint64_t pending, int32_t pid, int32_t tid, struct call_list *l)
{
	for (unsigned i = 0; i < IMAGE_SIGNALS; i++)
		if (pending >> i & 1) {
			if (tid)
				CALL(l, SYS_tgkill, RESTORER_IGNORE, (uint64_t)pid, (uint64_t)tid,
				     i + 1);
			else
				CALL(l, SYS_kill, RESTORER_IGNORE, (uint64_t)pid, i + 1);
		}
}

static void plan_add_timers(const struct image_program *p, struct call_list *l, struct call_data *d)
{
	for (uint64_t i = 0; i < 3; i++)
		if (p->timers[i][2] || p->timers[i][3])
			CALL(l, SYS_setitimer, RESTORER_IGNORE, i,
			     call_data_add(d, p->timers[i], 32, 8), 0);
}

/* The kernel gives them ascending numbers, from 0 on. */
static void plan_add_posix_timers(const struct image *im, struct call_list *l, struct call_data *d)
{
	uint64_t number = call_data_add(d, NULL, 8, 8);
	int next = 0;

	for (uint64_t i = 0; i < im->header.count[TABLE_TIMERS]; i++) {
		const struct image_timer *t = &image_timers(im)[i];
		const struct {
			uint64_t value;
			int32_t signal, notify, tid, pad[11];
		} event = { t->value, t->signal, t->notify, t->tid, { 0 } };
		uint64_t at = call_data_add(d, &event, sizeof(event), 8);

		for (; next <= t->number; next++) {
			CALL(l, SYS_timer_create, RESTORER_SUCCEED, (uint64_t)t->clock, at, number);
			CALL(l, RESTORER_LOAD, RESTORER_EQUAL, number)->expect = (uint64_t)next;
			if (next < t->number)
				CALL(l, SYS_timer_delete, RESTORER_SUCCEED, (uint64_t)next);
		}
		if (t->left[0] || t->left[1])
			CALL(l, SYS_timer_settime, RESTORER_SUCCEED, (uint64_t)t->number, 0,
			     call_data_add(d, t->interval, 32, 8), 0);
	}
}

void plan_add_thread(const struct image *im, const struct image_thread *t, struct call_list *l,
		     struct call_data *d)
{
	const struct image_program *p = image_program(im);
	const struct {
		uint64_t at;
		uint32_t flags, pad;
		uint64_t bytes;
	} stack = { t->stack_at, t->stack_flags & (uint32_t)~SS_ONSTACK, 0, t->stack_bytes };

	l->step = STEP_THREAD;
	CALL(l, SYS_sigaltstack, RESTORER_IGNORE, call_data_add(d, &stack, sizeof(stack), 8), 0);
	CALL(l, SYS_set_tid_address, RESTORER_IGNORE, t->tid_address);
	if (t->robust_list)
		CALL(l, SYS_set_robust_list, RESTORER_IGNORE, t->robust_list, t->robust_bytes);
	CALL(l, SYS_prctl, RESTORER_IGNORE, PR_SET_NAME, call_data_add(d, t->name, 16, 1));
	if (t->parent_death_signal)
		CALL(l, SYS_prctl, RESTORER_IGNORE, PR_SET_PDEATHSIG, t->parent_death_signal);
#if defined(__x86_64__)
	CALL(l, SYS_arch_prctl, RESTORER_IGNORE, ARCH_SET_FS, t->registers[21]);
	CALL(l, SYS_arch_prctl, RESTORER_IGNORE, ARCH_SET_GS, t->registers[22]);
#endif
	if (t->rseq)
		CALL(l, SYS_rseq, RESTORER_IGNORE, t->rseq, t->rseq_bytes, 0, t->rseq_signature);
	plan_add_pending(t->pending, p->pid, t->tid, l);
	if (t->tid == p->pid) {
		/* That of helpers and zombies of the tree. */
		const uint64_t child = UINT64_C(1) << (SIGCHLD - 1), now[2] = { 0 };

		CALL(l, SYS_rt_sigtimedwait, RESTORER_IGNORE, call_data_add(d, &child, 8, 8), 0,
		     call_data_add(d, now, sizeof(now), 8), 8);
		plan_add_timers(p, l, d);
		plan_add_posix_timers(im, l, d);
		plan_add_pending(p->pending, p->pid, 0, l);
		if (p->stopped)
			CALL(l, SYS_kill, RESTORER_IGNORE, (uint64_t)p->pid, SIGSTOP);
	}
}
