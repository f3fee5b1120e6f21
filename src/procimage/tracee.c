/* tracee.c - see tracee.h. */
#include "procimage/tracee.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "procimage/keep.h"
#include "procimage/thread_list.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#ifndef PR_GET_TID_ADDRESS
#define PR_GET_TID_ADDRESS 40
#endif

enum {
	PAGE = 4096, /* a unit; the kernel's may be larger */
	/* Below the main stack, from its new end: a mark, results, two frames, and a distance that is more
	 * than one call of the program adds at once. */
	RESULTS_AT = PAGE,
	CHILD_FRAME_AT = 2 * PAGE,
	FRAME_AT = CHILD_FRAME_AT + ARCH_FRAME_MOST,
	DISTANCE_AT = FRAME_AT + ARCH_FRAME_MOST,
	REGION_BYTES = DISTANCE_AT + 16 * PAGE,
	SYSCALL_STOP = SIGTRAP | 0x80,
};
#define REGION_MARK UINT64_C(0x7265676e61726d65)
_Static_assert(DISTANCE_AT % PAGE == 0, "marks lie at the beginning of pages");

static uint64_t tracee_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- stop ---- */

static struct tracee_thread *tracee_find(struct tracee *t, pid_t tid)
{
	for (unsigned i = 0; i < t->nthreads; i++)
		if (t->threads[i].state.tid == tid)
			return &t->threads[i];
	return NULL;
}

static int tracee_wait_stop(pid_t tid, uint64_t until_ms, int *out_status)
{
	for (unsigned turn = 0;; turn++) {
		pid_t got = waitpid(tid, out_status, __WALL | WNOHANG);

		if (got == tid)
			return 0;
		if (got < 0 && errno != EINTR)
			return -1;
		if (tracee_now_ms() >= until_ms) {
			errno = ETIMEDOUT;
			return -1;
		}
		if (turn < 200)
			sched_yield();
		else
			nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
	}
}

/* PTRACE_INTERRUPT stops with this event, whose signal is that of a program that was stopped by one. A signal that
 * arrives first is put back. */
static int tracee_wait_interrupted(pid_t tid, uint64_t until_ms, int *out_stopped, struct err *e)
{
	for (;;) {
		int status, signal;

		if (tracee_wait_stop(tid, until_ms, &status) < 0) {
			if (errno == ETIMEDOUT)
				return err_set(
					e, ERR_CONFLICT,
					"thread %d does not stop: it waits in the kernel without "
					"reacting to signals; try again",
					tid);
			return err_sys(e, "wait for thread %d", tid);
		}
		if (!WIFSTOPPED(status))
			return err_set(e, ERR_CONFLICT, "thread %d has ended", tid);
		signal = WSTOPSIG(status);
		if (status >> 16 == PTRACE_EVENT_STOP) {
			*out_stopped |= signal != SIGTRAP;
			return 0;
		}
		if (ptrace(PTRACE_CONT, tid, 0,
			   signal == SYSCALL_STOP || status >> 16 ? 0 : signal) < 0)
			return err_sys(e, "continue thread %d", tid);
	}
}

/* The kernel does not trace it: EPERM. */
static int tracee_has_ended(pid_t pid, pid_t tid)
{
	char path[64], text[512] = "", *state;
	auto_fd int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	state = n > 0 ? strrchr(text, ')') : NULL;
	return !state || state[2] == 'Z' || state[2] == 'X';
}

static int tracee_count(pid_t pid)
{
	pid_t tids[IMAGE_THREADS_MOST];
	struct err ignored;

	return thread_list_read(pid, tids, IMAGE_THREADS_MOST, &ignored);
}

static int tracee_seize(struct tracee *t, pid_t tid, struct err *e)
{
	const long options = PTRACE_O_TRACESYSGOOD;

	if (ptrace(PTRACE_SEIZE, tid, 0, options) < 0) {
		if (errno == ESRCH)
			return 1;
		if (errno == EPERM && tracee_has_ended(t->pid, tid))
			return tid == t->pid && tracee_count(t->pid) > 1
				       ? keep_refuse(e, KEEP_LEADER, t->pid, -1,
						     "other threads run")
				       : 1;
		if (errno == EPERM)
			return keep_refuse(e, KEEP_TRACED, t->pid, -1,
					   "or it belongs to another user");
		return err_sys(e, "trace thread %d", tid);
	}
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0)
		return err_sys(e, "interrupt thread %d", tid);
	t->threads = reallocarray(t->threads, t->nthreads + 1, sizeof(*t->threads));
	if (!t->threads)
		abort();
	t->threads[t->nthreads++] = (struct tracee_thread){ .state.tid = tid };
	return 0;
}

static int tracee_stop_new(struct tracee *t, uint64_t until, unsigned *out_new, struct err *e)
{
	pid_t tids[IMAGE_THREADS_MOST];
	int n = thread_list_read(t->pid, tids, IMAGE_THREADS_MOST, e);
	unsigned first = t->nthreads;

	if (n < 0)
		return -1;
	for (int i = 0; i < n; i++)
		if (!tracee_find(t, tids[i]) && tracee_seize(t, tids[i], e) < 0)
			return -1;
	for (unsigned i = first; i < t->nthreads; i++)
		if (tracee_wait_interrupted(t->threads[i].state.tid, until, &t->stopped, e) < 0)
			return -1;
	*out_new = t->nthreads - first;
	return 0;
}

/* ---- what can be read from outside ---- */

static int tracee_read_peek(struct tracee *t, uint64_t at, void *to, size_t len)
{
	return pread(t->memory, to, len, (off_t)at) == (ssize_t)len ? 0 : -1;
}

/* A thread that was interrupted in a restartable sequence continues at its abort address: what the
 * kernel does when it is scheduled elsewhere. */
static void tracee_abort_sequence(struct tracee *t, struct image_thread *s)
{
	struct {
		uint32_t version, flags;
		uint64_t start, length, abort;
	} section;
	uint64_t at, pc = arch_get_pc(s->registers);

	if (!s->rseq || tracee_read_peek(t, s->rseq + 8, &at, 8) < 0 || !at ||
	    tracee_read_peek(t, at, &section, sizeof(section)) < 0)
		return;
	if (pc - section.start < section.length)
		arch_set_pc(s->registers, section.abort);
}

static int tracee_read_thread(struct tracee *t, struct tracee_thread *th, struct err *e)
{
	struct image_thread *s = &th->state;
	struct __ptrace_rseq_configuration rseq = { 0 };
	void *robust = NULL;
	size_t robust_bytes = 0;

	th->vector = calloc(1, IMAGE_VECTOR);
	if (!th->vector)
		abort();
	if (arch_read_thread(s->tid, s, th->vector, e) < 0)
		return -1;
	if (ptrace(PTRACE_GETSIGMASK, s->tid, 8, &s->signal_mask) < 0)
		return err_sys(e, "read the signal mask of thread %d", s->tid);
	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, s->tid, sizeof(rseq), &rseq) > 0) {
		s->rseq = rseq.rseq_abi_pointer;
		s->rseq_bytes = rseq.rseq_abi_size;
		s->rseq_signature = rseq.signature;
	}
	if (syscall(SYS_get_robust_list, s->tid, &robust, &robust_bytes) == 0) {
		s->robust_list = (uintptr_t)robust;
		s->robust_bytes = robust_bytes;
	}
	tracee_abort_sequence(t, s);
	return 0;
}

static int tracee_stop_all(struct tracee *t, uint64_t until, struct err *e)
{
	char path[64];
	unsigned found;

	do
		if (tracee_stop_new(t, until, &found, e) < 0)
			return -1;
	while (found);
	snprintf(path, sizeof(path), "/proc/%d/mem", t->pid);
	t->memory = open(path, O_RDWR | O_CLOEXEC);
	if (t->memory < 0)
		return err_sys(e, "open the memory of process %d", t->pid);
	for (unsigned i = 0; i < t->nthreads; i++)
		if (tracee_read_thread(t, &t->threads[i], e) < 0)
			return -1;
	return 0;
}

int tracee_stop(struct tracee *t, pid_t pid, unsigned timeout_ms, struct err *e)
{
	*t = (struct tracee){ .pid = pid, .memory = -1 };
	if (tracee_stop_all(t, tracee_now_ms() + timeout_ms, e) < 0) {
		tracee_fini(t);
		return -1;
	}
	return 0;
}

/* ---- calls ---- */

static int tracee_put_frame(struct tracee *t, struct tracee_thread *th, struct err *e)
{
	static char frame[ARCH_FRAME_MOST];
	struct image_thread s = th->state;
	size_t len;

	arch_restart_call(s.registers);
	len = arch_build_frame(frame, t->frame, &t->code, &s, th->vector);
	if (pwrite(t->memory, frame, len, (off_t)t->frame) != (ssize_t)len)
		return err_sys(e, "write a frame below the stack of process %d", t->pid);
	return 0;
}

static int tracee_put_child_frame(struct tracee *t, uint64_t at, struct err *e)
{
	static char frame[ARCH_FRAME_MOST];
	size_t len = arch_build_exit_frame(frame, at, &t->code, &t->threads[0].state);

	if (pwrite(t->memory, frame, len, (off_t)at) != (ssize_t)len)
		return err_sys(e, "write a frame below the stack of process %d", t->pid);
	return 0;
}

static int tracee_put_mark(struct tracee *t, uint64_t at)
{
	uint64_t mark = REGION_MARK ^ at;

	return pwrite(t->memory, &mark, 8, (off_t)at) == 8 ? 0 : -1;
}

static int tracee_has_mark(struct tracee *t, uint64_t at)
{
	uint64_t mark;

	return tracee_read_peek(t, at, &mark, 8) == 0 && mark == (REGION_MARK ^ at);
}

/* Is the region of an earlier capture still at the end of the stack, unused? */
static int tracee_region_is_free(struct tracee *t, uint64_t low)
{
	if (!tracee_has_mark(t, low))
		return 0;
	for (uint64_t at = low + DISTANCE_AT; at < low + REGION_BYTES; at += PAGE)
		if (!tracee_has_mark(t, at))
			return 0;
	for (unsigned i = 0; i < t->nthreads; i++)
		if (arch_get_sp(t->threads[i].state.registers) - low < REGION_BYTES)
			return 0;
	return 1;
}

/* The kernel extends the stack for a write through /proc/PID/mem, page by page. */
static int tracee_make_region(struct tracee *t, uint64_t low, struct err *e)
{
	for (uint64_t at = low + REGION_BYTES - PAGE; at >= low; at -= PAGE)
		if (tracee_put_mark(t, at) < 0)
			return err_sys(e, "extend the stack of process %d", t->pid);
	return 0;
}

/* A stack that a program has extended to its limit itself, as Ruby does: its lowest part is as unused, if the main
 * thread is far above it. */
static int tracee_stack_is_reserved(struct tracee *t, uint64_t low)
{
	enum { FAR = 1 << 20 };

	for (unsigned i = 0; i < t->nthreads; i++) {
		uint64_t distance = arch_get_sp(t->threads[i].state.registers) - low;

		if (distance < REGION_BYTES + FAR)
			return 0;
		if (t->threads[i].state.tid == t->pid && distance > (UINT64_C(1) << 30))
			return 0;
	}
	return 1;
}

int tracee_prepare_calls(struct tracee *t, struct err *e)
{
	uint64_t low, end;

	if (thread_list_find_code(t->pid, t->memory, &t->code, &low, e) < 0)
		return -1;
	if (!tracee_region_is_free(t, low)) {
		/* A tracer that died here has left a part of it. */
		end = low;
		while (tracee_has_mark(t, low))
			low += PAGE;
		low -= REGION_BYTES;
		if (tracee_make_region(t, low, e) < 0) {
			if (!tracee_stack_is_reserved(t, end))
				return -1;
			low = end;
		}
	}
	t->results = low + RESULTS_AT;
	t->child_frame = low + CHILD_FRAME_AT;
	t->frame = low + FRAME_AT;
	return 0;
}

/* The calls that are injected do not sleep. */
static int tracee_wait_call(pid_t tid, int *out_status)
{
	pid_t got;

	do
		got = waitpid(tid, out_status, __WALL);
	while (got < 0 && errno == EINTR);
	return got == tid ? 0 : -1;
}

/* Resumes until the next stop that belongs to a call. Signals are blocked, except the two that cannot
 * be; SIGSTOP is sent again after the call. Another one means that the call cannot be executed: its code or stack is not
 * there. */
static int tracee_step(pid_t tid, struct err *e)
{
	int status;

	for (int stopped = 0;;) {
		if (ptrace(PTRACE_SYSCALL, tid, 0, 0) < 0)
			return err_sys(e, "resume thread %d", tid);
		if (tracee_wait_call(tid, &status) < 0)
			return err_sys(e, "wait for a call in thread %d", tid);
		if (!WIFSTOPPED(status))
			return err_set(e, ERR_CONFLICT, "thread %d has ended during a call", tid);
		if (WSTOPSIG(status) == SYSCALL_STOP) {
			if (stopped)
				syscall(SYS_tkill, tid, SIGSTOP);
			return 0;
		}
		if (!(status >> 16) && WSTOPSIG(status) != SIGSTOP)
			return err_set(e, ERR_SYS, "a call in thread %d ended with signal %d", tid,
				       WSTOPSIG(status));
		stopped |= !(status >> 16);
	}
}

/* First the registers, then the mask: whenever the tracer dies, a thread whose signals are blocked returns
 * through its frame, which has the mask. */
static int tracee_begin_calls(struct tracee *t, struct tracee_thread *th, struct err *e)
{
	const uint64_t none[ARCH_CALL_ARGS] = { 0 };
	uint64_t all = ~UINT64_C(0), registers[IMAGE_REGISTERS];

	if (th->called)
		return 0;
	if (tracee_put_frame(t, th, e) < 0)
		return -1;
	memcpy(registers, th->state.registers, sizeof(registers));
	arch_prepare_call(registers, &t->code, t->frame, SYS_getpid, none);
	th->called = 1;
	if (arch_write_registers(th->state.tid, registers, e) < 0)
		return -1;
	if (ptrace(PTRACE_SETSIGMASK, th->state.tid, 8, &all) < 0)
		return err_sys(e, "block the signals of thread %d", th->state.tid);
	return 0;
}

static int tracee_run_call(struct tracee *t, pid_t tid, const uint64_t *from, uint64_t frame,
			   long number, const uint64_t *args, long *out, struct err *e)
{
	uint64_t registers[IMAGE_REGISTERS];

	memcpy(registers, from, sizeof(registers));
	arch_prepare_call(registers, &t->code, frame, number, args);
	if (arch_write_registers(tid, registers, e) < 0 || tracee_step(tid, e) < 0 ||
	    tracee_step(tid, e) < 0 || arch_read_registers(tid, registers, e) < 0)
		return -1;
	*out = arch_call_result(registers);
	return 0;
}

int tracee_call(struct tracee *t, struct tracee_thread *th, long number, const uint64_t args[6],
		long *out, struct err *e)
{
	int is_child = th == &t->child;

	if (!is_child && tracee_begin_calls(t, th, e) < 0)
		return -1;
	return tracee_run_call(t, th->state.tid, th->state.registers, t->frame, number, args, out,
			       e);
}

/* Back into the place of the kernel in which PTRACE_INTERRUPT found the thread: there it restarts an
 * interrupted call by its own rules. */
static int tracee_end_calls(struct tracee *t, struct tracee_thread *th, struct err *e)
{
	pid_t tid = th->state.tid;

	if (!th->called)
		return 0;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0 || ptrace(PTRACE_CONT, tid, 0, 0) < 0)
		return err_sys(e, "interrupt thread %d", tid);
	if (tracee_wait_interrupted(tid, tracee_now_ms() + 5000, &t->stopped, e) < 0)
		return -1;
	/* In the reverse order of the beginning. */
	if (ptrace(PTRACE_SETSIGMASK, tid, 8, &th->state.signal_mask) < 0)
		return err_sys(e, "put back the signal mask of thread %d", tid);
	if (arch_write_registers(tid, th->state.registers, e) < 0)
		return -1;
	th->called = 0;
	return 0;
}

int tracee_ask_thread(struct tracee *t, struct tracee_thread *th, struct err *e)
{
	struct {
		uint64_t at;
		uint32_t flags, pad;
		uint64_t bytes;
	} stack;
	const uint64_t ask_stack[6] = { 0, t->results };
	const uint64_t ask_address[6] = { PR_GET_TID_ADDRESS, t->results + 64 };
	const uint64_t ask_death[6] = { PR_GET_PDEATHSIG, t->results + 128 };
	long result, death = 0;

	if (tracee_call(t, th, SYS_sigaltstack, ask_stack, &result, e) < 0)
		return -1;
	if (result == 0 && tracee_read_peek(t, t->results, &stack, sizeof(stack)) == 0) {
		th->state.stack_at = stack.at;
		th->state.stack_bytes = stack.bytes;
		th->state.stack_flags = stack.flags;
	}
	if (tracee_call(t, th, SYS_prctl, ask_address, &result, e) < 0)
		return -1;
	if (result < 0)
		return err_set(
			e, ERR_SYS,
			"this kernel does not tell tid addresses (CONFIG_CHECKPOINT_RESTORE)");
	if (tracee_read_peek(t, t->results + 64, &th->state.tid_address, 8) < 0)
		return err_sys(e, "read the tid address of thread %d", th->state.tid);
	if (tracee_call(t, th, SYS_prctl, ask_death, &death, e) == 0 && death == 0)
		tracee_read_peek(t, t->results + 128, &th->state.parent_death_signal, 4);
	return tracee_end_calls(t, th, e);
}

/* ---- snapshot child ---- */

/* The child is attached by the kernel before its first instruction. */
static int tracee_catch_child(struct tracee *t, pid_t tid, struct err *e)
{
	unsigned long child = 0;
	int status;

	if (ptrace(PTRACE_SYSCALL, tid, 0, 0) < 0 ||
	    tracee_wait_stop(tid, tracee_now_ms() + 5000, &status) < 0)
		return err_sys(e, "wait for the fork of process %d", t->pid);
	if (WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_CLONE) {
		if (ptrace(PTRACE_GETEVENTMSG, tid, 0, &child) < 0)
			return err_sys(e, "ask for the snapshot child");
		t->child_pid = (pid_t)child;
		if (tracee_wait_stop(t->child_pid, tracee_now_ms() + 5000, &status) < 0)
			return err_sys(e, "wait for the snapshot child");
		return tracee_step(tid, e);
	}
	/* No event: the call has failed, and this is its end. */
	return 0;
}

int tracee_fork(struct tracee *t, struct err *e)
{
	struct tracee_thread *th = &t->threads[0];
	pid_t tid = th->state.tid;
	uint64_t registers[IMAGE_REGISTERS], args[6];
	long result;

	if (tracee_put_child_frame(t, t->child_frame, e) < 0 || tracee_begin_calls(t, th, e) < 0)
		return -1;
	if (ptrace(PTRACE_SETOPTIONS, tid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE) < 0)
		return err_sys(e, "trace forks of thread %d", tid);
	arch_clone_args(args, CLONE_PARENT, arch_call_stack(t->child_frame));
	memcpy(registers, th->state.registers, sizeof(registers));
	arch_prepare_call(registers, &t->code, t->frame, SYS_clone, args);
	if (arch_write_registers(tid, registers, e) < 0 || tracee_step(tid, e) < 0 ||
	    tracee_catch_child(t, tid, e) < 0 || arch_read_registers(tid, registers, e) < 0)
		return -1;
	ptrace(PTRACE_SETOPTIONS, tid, 0, PTRACE_O_TRACESYSGOOD);
	result = arch_call_result(registers);
	if (result < 0) {
		errno = (int)-result;
		if (errno == EAGAIN)
			return keep_refuse(e, KEEP_NO_PID, t->pid, -1, "limits.pids");
		return err_sys(e, "fork process %d for its snapshot", t->pid);
	}
	if (!t->child_pid)
		return err_set(e, ERR_SYS, "the snapshot child %ld was not attached", result);
	t->child = (struct tracee_thread){ .state = th->state };
	t->child.state.tid = t->child_pid;
	/* Calls of the child return through its own frame. */
	t->frame = t->child_frame;
	return tracee_end_calls(t, th, e);
}

/* ---- end ---- */

int tracee_release(struct tracee *t, struct err *e)
{
	int rc = 0;

	for (unsigned i = 0; i < t->nthreads; i++) {
		struct tracee_thread *th = &t->threads[i];

		if (tracee_end_calls(t, th, e) < 0)
			rc = -1;
		ptrace(PTRACE_DETACH, th->state.tid, 0, 0);
		free(th->vector);
	}
	free(t->threads);
	t->threads = NULL;
	t->nthreads = 0;
	if (t->memory >= 0)
		close(t->memory);
	t->memory = -1;
	return rc;
}

static void tracee_end_child(struct tracee *t)
{
	if (!t->child_pid)
		return;
	/* Without the right to send a signal to the user of the box: it returns through its frame and ends. */
	if (kill(t->child_pid, SIGKILL) < 0) {
		ptrace(PTRACE_DETACH, t->child_pid, 0, 0);
		t->child_pid = 0;
		return;
	}
	while (waitpid(t->child_pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	t->child_pid = 0;
}

void tracee_fini(struct tracee *t)
{
	struct err ignored;

	tracee_release(t, &ignored);
	tracee_end_child(t);
}
