/* tracee.h - a program whose threads are stopped by ptrace, and calls injected into it.
 *
 * The program survives the death of the tracer at every moment. A thread is resumed only with registers
 * that execute one system call and then return through a frame with the thread's own registers, which
 * was written before. The snapshot child returns through a frame that executes exit_group().
 * The frames lie below the present end of the main stack, where no program keeps data; a later capture
 * uses the same place again, if the stack has not grown over it.
 * Owns: the state of being traced, from tracee_stop() to tracee_release(). */
#pragma once
#include "procimage/arch.h"
#include "procimage/image.h"

struct err;

struct tracee_thread {
	struct image_thread state; /* the registers are the ones the source continues with */
	char *vector;              /* IMAGE_VECTOR bytes */
	pid_t inner_tid;           /* in the innermost pid namespace */
	unsigned called : 1;       /* a call was injected: the registers must be put back */
};

struct tracee {
	pid_t pid;
	int memory; /* /proc/PID/mem */
	struct tracee_thread *threads;
	unsigned nthreads;
	struct arch_code code;
	uint64_t frame;       /* of the thread with an injected call */
	uint64_t child_frame; /* of the snapshot child */
	uint64_t results;     /* memory for results of calls */
	struct tracee_thread child;
	pid_t child_pid; /* snapshot child, or 0 */
	int stopped;     /* by a signal: it is again, when it is released */
};

/* Stops every thread, and reads their registers, signal masks, robust lists and rseq areas. On failure
 * nothing is traced. */
int tracee_stop(struct tracee *t, pid_t pid, unsigned timeout_ms, struct err *e);
/* Finds instructions, and extends the main stack by room for frames. Needed before the first call. */
int tracee_prepare_calls(struct tracee *t, struct err *e);
/* Executes one call in the thread; -1 only if it could not be executed. */
int tracee_call(struct tracee *t, struct tracee_thread *th, long number, const uint64_t args[6],
		long *out, struct err *e);
/* What only the thread itself can tell: alternate stack, address that is cleared at its end. */
int tracee_ask_thread(struct tracee *t, struct tracee_thread *th, struct err *e);
/* Forks the program into a child that never runs. It has the tracee's memory. */
int tracee_fork(struct tracee *t, struct err *e);
/* Threads continue where they were; the snapshot child stays. */
int tracee_release(struct tracee *t, struct err *e);
void tracee_fini(struct tracee *t); /* releases, ends the snapshot child, frees */
