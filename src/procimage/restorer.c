/* restorer.c - see restorer.h. Linked alone into a flat block of code without data: no writable
 * variable, no table of addresses, no call of a library. */
#include "procimage/restorer.h"
#include "procimage/restorer_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SYS(nr, ...) SYS_PICK(nr, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define SYS_PICK(nr, a, b, c, d, e, f, ...)                                                        \
	restorer_sys(nr, (uint64_t)(a), (uint64_t)(b), (uint64_t)(c), (uint64_t)(d),               \
		     (uint64_t)(e), (uint64_t)(f))

void restorer_main(struct restorer_state *s);

static __attribute__((noreturn)) void restorer_exit(int status)
{
	for (;;)
		SYS(SYS_exit_group, status);
}

static void restorer_send(int fd, int64_t error, unsigned step, uint64_t detail, int64_t result)
{
	volatile struct restorer_report r;

	r.error = (int32_t)error;
	r.step = step;
	r.detail = detail;
	r.result = result;
	SYS(SYS_write, fd, &r, sizeof(r));
}

static __attribute__((noreturn)) void restorer_fail(int fd, long result, unsigned step,
						    uint64_t detail)
{
	restorer_send(fd, result < 0 ? -result : EPROTO, step, detail, result);
	restorer_exit(70);
}

/* ---- lists ---- */

static long restorer_move(int from, int to, int cloexec)
{
	long rc;

	if (from == to)
		return SYS(SYS_fcntl, from, F_SETFD, cloexec ? FD_CLOEXEC : 0);
	rc = SYS(SYS_dup3, from, to, cloexec ? O_CLOEXEC : 0);
	SYS(SYS_close, from);
	return rc < 0 ? rc : 0;
}

static long restorer_do(struct restorer_state *s, const struct restorer_call *c)
{
	uint64_t a[6];

	for (unsigned i = 0; i < 6; i++)
		a[i] = c->from_slot >> i & 1 ? (uint64_t)s->slots[c->args[i] % RESTORER_SLOTS]
					     : c->args[i];
	if (c->number == RESTORER_MOVE)
		return restorer_move((int)a[0], (int)a[1], (int)a[2]);
	if (c->number == RESTORER_LOAD)
		return *(const volatile int32_t *)(uintptr_t)a[0];
	if (c->number == RESTORER_STORE) {
		*(volatile int32_t *)(uintptr_t)a[0] = (int32_t)a[1];
		return 0;
	}
	return restorer_sys(c->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Failures are reported on fd and end the process. */
static void restorer_run(struct restorer_state *s, const struct restorer_list *list, int fd)
{
	const struct restorer_call *c = (const struct restorer_call *)(uintptr_t)list->at;

	for (uint64_t i = 0; i < list->count; i++, c++) {
		long rc;

		do
			rc = restorer_do(s, c);
		while (rc == -EINTR);
		if (c->check == RESTORER_SUCCEED && rc < 0 && rc > -4096)
			restorer_fail(fd, rc, c->step, i);
		if (c->check == RESTORER_EQUAL && (uint64_t)rc != c->expect)
			restorer_fail(fd, rc, c->step, i);
		if (c->save)
			s->slots[(c->save - 1) % RESTORER_SLOTS] = rc;
	}
}

/* ---- the copy ---- */

static void restorer_thread_main(void *state, void *thread)
{
	struct restorer_state *s = state;
	const struct restorer_thread *t = thread;

	while (!__atomic_load_n(&s->go, __ATOMIC_ACQUIRE))
		SYS(SYS_futex, &s->go, FUTEX_WAIT, 0, 0);
	restorer_run(s, &t->calls, -1);
	restorer_sig_return(t->frame, t->tls);
}

/* The descriptors of the order move above all numbers of the image, the others are closed. */
static void restorer_place_fds(struct restorer_state *s)
{
	int *own[] = { &s->fds[1], &s->ask[1], &s->answer[0] };
	const int32_t *outside = s->fds + 2 + s->order.tasks;
	int socket = s->fds[1];

	for (unsigned i = 0; i < 3; i++) {
		long fd = SYS(SYS_fcntl, *own[i], F_DUPFD_CLOEXEC, s->first_high);

		if (fd < 0)
			restorer_fail(socket, fd, STEP_DESCRIPTOR, (uint64_t)*own[i]);
		*own[i] = (int)fd;
	}
	for (unsigned i = 0; i < s->order.outside; i++) {
		long fd = SYS(SYS_fcntl, outside[i], F_DUPFD_CLOEXEC, s->first_high);

		if (fd < 0)
			restorer_fail(socket, fd, STEP_DESCRIPTOR, (uint64_t)outside[i]);
		s->slots[i] = fd;
	}
	/* The numbers above first_high that are in use are exactly the ones just made, unless the zygote
	 * had a descriptor there: it holds only low ones. */
	SYS(SYS_close_range, 0, s->first_high - 1, 0);
}

static void restorer_start_threads(struct restorer_state *s, const struct restorer_process *p)
{
	struct restorer_thread *t = (struct restorer_thread *)(uintptr_t)p->threads;
	const uint64_t flags =
		CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
	int socket = s->fds[1];

	for (unsigned i = 1; i < p->nthreads; i++) {
		volatile char byte = 0;
		long rc;

		if (SYS(SYS_write, s->ask[1], &t[i].tid, 4) != 4 ||
		    SYS(SYS_read, s->answer[0], &byte, 1) != 1)
			restorer_fail(socket, -EPIPE, STEP_TID, i);
		rc = restorer_clone(flags, t[i].stack, restorer_thread_main, s, &t[i]);
		if (rc < 0)
			restorer_fail(socket, rc, STEP_THREAD, i);
		if (rc != t[i].tid)
			restorer_fail(socket, rc, STEP_TID, (uint64_t)t[i].tid);
	}
}

/* ---- trees ---- */

enum { PHASE_BORN = 1, PHASE_OBJECTS, PHASE_GO, PHASE_END };

static struct restorer_process *restorer_process_at(struct restorer_state *s, unsigned i)
{
	return (struct restorer_process *)(uintptr_t)s->processes + i;
}

static struct restorer_sync *restorer_sync_of(struct restorer_state *s)
{
	return (struct restorer_sync *)(uintptr_t)s->sync;
}

/* A negative one is counted from that of the helper. */
static int32_t restorer_pid_of(const struct restorer_state *s, const struct restorer_process *p)
{
	return p->pid < 0 ? s->order.helper - p->pid : p->pid;
}

static void restorer_set(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	SYS(SYS_futex, word, FUTEX_WAKE, 0x7fffffff);
}

static void restorer_count(uint32_t *word)
{
	__atomic_fetch_add(word, 1, __ATOMIC_ACQ_REL);
	SYS(SYS_futex, word, FUTEX_WAKE, 0x7fffffff);
}

/* Ends if the first process of the tree has ended. */
static void restorer_await(struct restorer_state *s, uint32_t *word, uint32_t value)
{
	volatile int64_t second[2] = { 1, 0 };
	uint32_t seen;

	while ((seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)) < value) {
		SYS(SYS_futex, word, FUTEX_WAIT, seen, second);
		if (s->me && SYS(SYS_kill, s->pid, 0) < 0)
			restorer_exit(0);
	}
}

static void restorer_map_sync(struct restorer_state *s)
{
	long rc;

	if (s->nprocesses < 2)
		return;
	/* MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE */
	rc = SYS(SYS_mmap, s->sync, 4096, 3, 0x100021, -1, 0);
	if (rc != (long)s->sync)
		restorer_fail(s->fds[1], rc, STEP_TREE, 0);
}

static void restorer_live(struct restorer_state *s);

static void restorer_fork(struct restorer_state *s, unsigned i)
{
	volatile struct clone_args args = { .flags = CLONE_FILES, .exit_signal = SIGCHLD };
	volatile int32_t tids[1] = { restorer_pid_of(s, restorer_process_at(s, i)) };
	long rc;

	args.set_tid = (uint64_t)(uintptr_t)tids;
	args.set_tid_size = 1;
	rc = SYS(SYS_clone3, &args, sizeof(args));
	if (rc < 0)
		restorer_fail(s->fds[1], rc, STEP_PID, (uint64_t)tids[0]);
	if (rc == 0) {
		s->me = i;
		restorer_live(s);
		restorer_exit(0);
	}
}

static void restorer_fork_children(struct restorer_state *s, unsigned early)
{
	for (unsigned i = s->me + 1; i < s->nprocesses; i++)
		if (restorer_process_at(s, i)->parent == s->me &&
		    restorer_process_at(s, i)->early == early)
			restorer_fork(s, i);
}

static void restorer_be_born(struct restorer_state *s)
{
	const struct restorer_process *p = restorer_process_at(s, s->me);
	long rc = 0;

	restorer_run(s, &p->build, s->fds[1]);
	restorer_fork_children(s, 1);
	if (p->leads)
		rc = SYS(SYS_setsid, 0);
	else if (p->group == p->pid)
		rc = SYS(SYS_setpgid, 0, 0);
	if (rc < 0)
		restorer_fail(s->fds[1], rc, STEP_GROUP, (uint64_t)p->pid);
	/* Before the children of the session, which inherit it. */
	if (p->leads && p->terminal)
		rc = SYS(SYS_ioctl, s->fds[2 + s->order.tasks + p->terminal - 1], TIOCSCTTY, 0);
	if (rc < 0)
		restorer_fail(s->fds[1], rc, STEP_TERMINAL, p->terminal);
	restorer_fork_children(s, 0);
}

/* All of them exist, so that all groups do. */
static void restorer_join(struct restorer_state *s)
{
	const struct restorer_process *p = restorer_process_at(s, s->me);
	struct restorer_sync *y = restorer_sync_of(s);
	long rc;

	if (s->me) {
		restorer_count(&y->born);
		restorer_await(s, &y->phase, PHASE_BORN);
		s->fds[1] = y->socket;
		s->ask[1] = y->ask;
		s->answer[0] = y->answer;
	} else {
		restorer_await(s, &y->born, s->nprocesses - 1);
		restorer_place_fds(s);
		y->socket = s->fds[1];
		y->ask = s->ask[1];
		y->answer = s->answer[0];
		for (unsigned i = 0; i < s->order.outside; i++)
			y->outside[i] = (int32_t)s->slots[i];
		restorer_set(&y->phase, PHASE_BORN);
	}
	if (p->group && p->group != p->pid && !p->leads) {
		rc = SYS(SYS_setpgid, 0, p->group);
		if (rc < 0)
			restorer_fail(s->fds[1], rc, STEP_GROUP, (uint64_t)p->group);
	}
	restorer_count(&y->joined);
	restorer_await(s, &y->joined, s->nprocesses);
	/* The group may have ended. */
	if (p->leads && p->terminal && p->foreground)
		SYS(SYS_ioctl, y->outside[p->terminal - 1], TIOCSPGRP, &p->foreground);
}

static __attribute__((noreturn)) void restorer_end(uint32_t status)
{
	volatile uint64_t none[4] = { 0 }, all[1] = { 0 };
	unsigned signal = status & 127;

	if (signal) {
		SYS(SYS_rt_sigaction, signal, none, 0, 8);
		SYS(SYS_rt_sigprocmask, SIG_SETMASK, all, 0, 8);
		SYS(SYS_kill, SYS(SYS_getpid, 0), signal);
	}
	restorer_exit((int)(status >> 8 & 255));
}

/* Helpers are waited for, zombies stay. */
static void restorer_settle(struct restorer_state *s)
{
	volatile char info[128];

	for (unsigned i = s->me + 1; i < s->nprocesses; i++) {
		const struct restorer_process *p = restorer_process_at(s, i);

		if (p->parent != s->me)
			continue;
		if (p->role == ROLE_HELPER)
			SYS(SYS_wait4, restorer_pid_of(s, p), 0, __WALL, 0);
		if (p->role == ROLE_ZOMBIE)
			SYS(SYS_waitid, P_PID, p->pid, info, WEXITED | WNOWAIT, 0);
	}
}

/* From here on each process has descriptors of its own. */
static void restorer_share(struct restorer_state *s)
{
	struct restorer_sync *y = restorer_sync_of(s);
	long rc;

	if (s->me) {
		restorer_await(s, &y->phase, PHASE_OBJECTS);
		rc = SYS(SYS_close_range, 0x7fffffff, ~0U, 2 /* CLOSE_RANGE_UNSHARE */);
		if (rc < 0)
			restorer_fail(s->fds[1], rc, STEP_TREE, 1);
		restorer_count(&y->detached);
	} else {
		restorer_run(s, &s->objects, s->fds[1]);
		restorer_set(&y->phase, PHASE_OBJECTS);
		restorer_await(s, &y->detached, s->programs - 1);
	}
}

static __attribute__((noreturn)) void restorer_continue(struct restorer_state *s)
{
	const struct restorer_process *p = restorer_process_at(s, s->me);
	const struct restorer_thread *first = (const struct restorer_thread *)(uintptr_t)p->threads;

	if (s->nprocesses > 1)
		SYS(SYS_munmap, s->sync, 4096);
	SYS(SYS_close_range, s->first_high, ~0U, 0);
	restorer_run(s, &first->calls, -1);
	__atomic_store_n(&s->go, 1, __ATOMIC_RELEASE);
	SYS(SYS_futex, &s->go, FUTEX_WAKE, 0x7fffffff);
	restorer_sig_return(first->frame, first->tls);
}

static void restorer_threads_in_turn(struct restorer_state *s)
{
	struct restorer_sync *y = restorer_sync_of(s);
	unsigned before = 0;

	for (unsigned i = 0; i < s->me; i++)
		before += restorer_process_at(s, i)->role == ROLE_PROGRAM;
	if (s->nprocesses > 1)
		restorer_await(s, &y->turn, before);
	restorer_start_threads(s, restorer_process_at(s, s->me));
	if (s->nprocesses > 1)
		restorer_count(&y->turn);
	SYS(SYS_close, s->ask[1]);
	SYS(SYS_close, s->answer[0]);
}

static void restorer_live(struct restorer_state *s)
{
	const struct restorer_process *p = restorer_process_at(s, s->me);
	struct restorer_sync *y = restorer_sync_of(s);

	restorer_be_born(s);
	if (s->nprocesses > 1)
		restorer_join(s);
	else
		restorer_place_fds(s);
	if (p->role == ROLE_PROGRAM)
		restorer_settle(s);
	restorer_run(s, &s->confine, s->fds[1]);
	if (p->role == ROLE_ZOMBIE)
		SYS(SYS_prctl, 15 /* PR_SET_NAME */, p->name);
	if (p->role != ROLE_PROGRAM)
		restorer_end(p->status);
	if (s->nprocesses > 1)
		restorer_share(s);
	else
		restorer_run(s, &s->objects, s->fds[1]);
	restorer_run(s, &p->plan, s->fds[1]);
	restorer_threads_in_turn(s);
	if (!s->me)
		return;
	restorer_count(&y->done);
	restorer_await(s, &y->phase, PHASE_GO);
	if (__atomic_load_n(&y->phase, __ATOMIC_ACQUIRE) != PHASE_GO)
		restorer_exit(0);
	restorer_continue(s);
}

/* The helper ends when all processes have their threads. If it ended later, and were the last parent in the session
 * outside of a process group with a stopped process, the kernel would send this group SIGHUP and SIGCONT. */
static void restorer_await_other_parent(struct restorer_state *s, long helper)
{
	volatile int64_t pause[2] = { 0, 200000 };

	for (unsigned i = 0; SYS(SYS_getppid, 0) == helper; i++) {
		if (i == 25000)
			restorer_fail(s->fds[1], -ETIMEDOUT, STEP_HELPER, (uint64_t)helper);
		if (i < 50)
			SYS(SYS_sched_yield, 0);
		else
			SYS(SYS_nanosleep, pause, 0);
	}
}

static __attribute__((noreturn)) void restorer_copy(struct restorer_state *s)
{
	struct restorer_sync *y = restorer_sync_of(s);
	long rc, helper = SYS(SYS_getppid, 0);
	volatile char byte;

	restorer_map_sync(s);
	restorer_run(s, &s->domain, s->fds[1]);
	restorer_live(s);
	if (s->nprocesses > 1)
		restorer_await(s, &y->done, s->programs - 1);
	restorer_await_other_parent(s, helper);
	restorer_send(s->fds[1], 0, STEP_NONE, 0, SYS(SYS_getpid, 0));
	do
		rc = SYS(SYS_read, s->fds[1], &byte, 1);
	while (rc == -EINTR);
	if (s->nprocesses > 1)
		restorer_set(&y->phase, rc == 1 ? PHASE_GO : PHASE_END);
	if (rc != 1)
		restorer_exit(0);
	restorer_continue(s);
}

/* ---- the helper inside the pid namespace ---- */

static void restorer_number(char *to, unsigned long n, unsigned *out_len)
{
	char digits[24];
	unsigned len = 0, i = 0;

	do
		digits[len++] = (char)('0' + n % 10);
	while (n /= 10);
	while (len)
		((volatile char *)to)[i++] = digits[--len];
	*out_len = i;
}

static void restorer_serve_tids(struct restorer_state *s)
{
	volatile int32_t tid;
	char text[24];

	while (SYS(SYS_read, s->ask[0], &tid, 4) == 4) {
		unsigned len;
		long rc;

		restorer_number(text, (unsigned long)(tid - 1), &len);
		rc = SYS(SYS_pwrite64, s->last_pid, text, len, 0);
		if (rc != (long)len) {
			restorer_send(s->fds[1], rc < 0 ? -rc : EIO, STEP_TID, (uint64_t)tid, rc);
			return;
		}
		SYS(SYS_write, s->answer[1], "", 1);
	}
}

static void restorer_inner(void *state)
{
	struct restorer_state *s = state;
	volatile struct clone_args args = { .exit_signal = SIGCHLD };
	volatile int32_t tids[1] = { s->pid };
	long rc;

	args.set_tid = (uint64_t)(uintptr_t)tids;
	args.set_tid_size = 1;
	if ((rc = SYS(SYS_pipe2, s->ask, 0)) < 0 || (rc = SYS(SYS_pipe2, s->answer, 0)) < 0)
		restorer_fail(s->fds[1], rc, STEP_HELPER, 0);
	/* From here on the copy has its own memory; this one and the zygote share theirs. */
	rc = SYS(SYS_clone3, &args, sizeof(args));
	if (rc == 0)
		restorer_copy(s);
	if (rc < 0)
		restorer_fail(s->fds[1], rc, STEP_PID, (uint64_t)s->pid);
	SYS(SYS_close, s->ask[1]);
	SYS(SYS_close, s->answer[0]);
	restorer_serve_tids(s);
	restorer_exit(0);
}

/* ---- the helper outside, and the zygote ---- */

/* Its pid is above the ones of the image, so that it takes none of them. */
static long restorer_clone_inner(struct restorer_state *s)
{
	volatile struct clone_args args = { .flags = CLONE_VM | CLONE_VFORK,
					    .exit_signal = SIGCHLD };
	volatile int32_t tids[1] = { s->order.helper };

	args.stack = s->inner_stack - RESTORER_STACK;
	args.stack_size = RESTORER_STACK;
	args.set_tid = (uint64_t)(uintptr_t)tids;
	args.set_tid_size = s->order.helper ? 1 : 0;
	return restorer_clone3((uint64_t)(uintptr_t)&args, sizeof(args), restorer_inner, s);
}

static void restorer_helper(void *state, void *unused)
{
	struct restorer_state *s = state;
	long rc = 0;

	(void)unused;
	/* "0": this process and all its forks. */
	for (unsigned i = 0; i < s->order.tasks; i++)
		if ((rc = SYS(SYS_write, s->fds[2 + i], "0", 1)) != 1)
			restorer_fail(s->fds[1], rc, STEP_CGROUP, i);
	rc = 0;
	if (s->order.namespaces)
		rc = SYS(SYS_setns, s->fds[0], s->order.namespaces);
	if (rc < 0)
		restorer_fail(s->fds[1], rc, STEP_NAMESPACE, (uint64_t)s->order.namespaces);
	rc = restorer_clone_inner(s);
	if (rc < 0)
		restorer_fail(s->fds[1], rc, STEP_HELPER, (uint64_t)s->order.helper);
	SYS(SYS_wait4, rc, 0, __WALL, 0);
	restorer_exit(0);
}

static int restorer_receive(struct restorer_state *s)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(s->fds))];
	} control;
	struct iovec iov = { &s->order, sizeof(s->order) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	volatile int32_t *from;
	long n;

	do
		n = SYS(SYS_recvmsg, s->control, &m, MSG_CMSG_CLOEXEC);
	while (n == -EINTR);
	if (n != sizeof(s->order))
		restorer_exit(0);
	if (m.msg_controllen < sizeof(control.head) || control.head.cmsg_type != SCM_RIGHTS ||
	    s->order.outside > RESTORER_OUTSIDE || s->order.tasks > RESTORER_TASKS ||
	    control.head.cmsg_len !=
		    CMSG_LEN(4 * (2 + (uint64_t)s->order.tasks + s->order.outside)))
		return -1;
	from = (volatile int32_t *)CMSG_DATA(&control.head);
	for (unsigned i = 0; i < 2 + s->order.tasks + s->order.outside; i++)
		s->fds[i] = from[i];
	return 0;
}

__attribute__((section(".text.entry"))) void restorer_main(struct restorer_state *s)
{
	restorer_run(s, &s->build, s->control);
	restorer_send(s->control, 0, STEP_NONE, 0, 0);
	for (;;) {
		long rc;

		if (restorer_receive(s) < 0)
			restorer_fail(s->control, -EINVAL, STEP_ORDER, 0);
		rc = restorer_clone(CLONE_VM | CLONE_VFORK | SIGCHLD, s->helper_stack,
				    restorer_helper, s, 0);
		if (rc < 0)
			restorer_send(s->fds[1], -rc, STEP_HELPER, 0, rc);
		else
			SYS(SYS_wait4, rc, 0, __WALL, 0);
		for (unsigned i = 0; i < 2 + s->order.tasks + s->order.outside; i++)
			SYS(SYS_close, s->fds[i]);
	}
}
