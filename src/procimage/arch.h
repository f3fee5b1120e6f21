/* arch.h - what differs between architectures: registers, frames of signals, instructions.
 *
 * A frame is what the kernel writes to a stack when it delivers a signal. A thread that executes
 * rt_sigreturn with its stack pointer at a frame continues with the registers in it. Frames are used
 * twice: a thread in which a call is injected returns through its own frame when the tracer dies, and
 * the threads of a copy start through one. */
#pragma once
#include "procimage/image.h"
#include <sys/types.h>

struct err;

enum {
	ARCH_FRAME_MOST = 20480, /* bytes of a frame with vector registers */
	ARCH_CALL_ARGS = 6,
};

struct arch_code {           /* instructions found in the program's own memory */
	uint64_t call;       /* a system call, then a return */
	uint64_t sig_return; /* the system call rt_sigreturn */
};

/* All registers of a stopped thread. `vector` has IMAGE_VECTOR bytes. */
int arch_read_thread(pid_t tid, struct image_thread *t, void *vector, struct err *e);
int arch_write_registers(pid_t tid, const uint64_t *registers, struct err *e);
int arch_read_registers(pid_t tid, uint64_t *registers, struct err *e);
long arch_call_result(const uint64_t *registers);

uint64_t arch_get_pc(const uint64_t *registers);
uint64_t arch_get_sp(const uint64_t *registers);
void arch_set_pc(uint64_t *registers, uint64_t pc);

/* An interrupted call starts anew when a copy continues with these registers. */
void arch_restart_call(uint64_t *registers);

/* Registers that execute one call at code->call and then return through the frame at `frame`. */
void arch_prepare_call(uint64_t *registers, const struct arch_code *code, uint64_t frame,
		       long number, const uint64_t *args);

/* Searches executable bytes that begin at address `at`; fills what it finds. */
void arch_find_code(struct arch_code *code, const void *bytes, size_t len, uint64_t at);

/* A frame for address `at` (a multiple of 64); returns its length. The word or register through which
 * arch_prepare_call() returns is part of it. Leaves the alternate stack of the thread as it is. */
size_t arch_build_frame(void *frame, uint64_t at, const struct arch_code *code,
			const struct image_thread *t, const void *vector);
/* A frame that executes exit_group(0). */
size_t arch_build_exit_frame(void *frame, uint64_t at, const struct arch_code *code,
			     const struct image_thread *t);
uint64_t arch_frame_stack(uint64_t at); /* the stack pointer for a direct rt_sigreturn */
uint64_t arch_call_stack(
	uint64_t at); /* the stack pointer of a call that returns through the frame */

/* Why these registers cannot be carried, or NULL. */
const char *arch_refuse(const struct image_thread *t, const void *vector);
/* 0 if frames can be built of these records, which come from a file. */
int arch_check_thread(const struct image_thread *t, const void *vector);
/* Arguments of clone() in this architecture's order. */
void arch_clone_args(uint64_t *args, uint64_t flags, uint64_t stack);
/* Address of the first byte beyond user memory. */
#if defined(__aarch64__)
#define ARCH_USER_END UINT64_C(0x1000000000000) /* 48 bits */
#else
#define ARCH_USER_END UINT64_C(0x7ffffffff000)
#endif
