/* arch_aarch64.c - see arch.h. Compiled to nothing elsewhere. */
#if defined(__aarch64__)
#include "procimage/arch.h"
#include "base/err.h"

#include <elf.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#ifndef NT_ARM_SYSTEM_CALL
#define NT_ARM_SYSTEM_CALL 0x404
#endif

enum { LINK = 30, SP = 31, PC = 32, STATE = 33, WORDS };
_Static_assert((int)WORDS <= (int)IMAGE_REGISTERS, "room for registers");

enum {
	VECTOR_BYTES = 32 * 16 + 8, /* user_fpsimd_state: 32 registers, two status words */
	FPSIMD_MAGIC = 0x46508001,
	SIGNAL_INFO = 128,
	CONTEXT = 176, /* ucontext_t before its sigcontext, which is aligned to 16 */
};

static int arch_regset(int request, pid_t tid, int set, void *at, size_t len)
{
	struct iovec iov = { at, len };

	return ptrace(request, tid, set, &iov) < 0 || iov.iov_len != len ? -1 : 0;
}

int arch_read_registers(pid_t tid, uint64_t *registers, struct err *e)
{
	if (arch_regset(PTRACE_GETREGSET, tid, NT_PRSTATUS, registers, WORDS * 8) < 0)
		return err_sys(e, "read the registers of thread %d", tid);
	return 0;
}

/* The kernel restarts an interrupted call by the PC alone: the number is taken away, so that it does not
 * change the registers of an injected one. */
int arch_write_registers(pid_t tid, const uint64_t *registers, struct err *e)
{
	int none = -1;

	if (arch_regset(PTRACE_SETREGSET, tid, NT_PRSTATUS, (void *)(uintptr_t)registers,
			WORDS * 8) < 0 ||
	    arch_regset(PTRACE_SETREGSET, tid, NT_ARM_SYSTEM_CALL, &none, sizeof(none)) < 0)
		return err_sys(e, "write the registers of thread %d", tid);
	return 0;
}

int arch_read_thread(pid_t tid, struct image_thread *t, void *vector, struct err *e)
{
	struct iovec iov = { vector, IMAGE_VECTOR };

	if (arch_read_registers(tid, t->registers, e) < 0)
		return -1;
	if (ptrace(PTRACE_GETREGSET, tid, NT_PRFPREG, &iov) < 0 || iov.iov_len < VECTOR_BYTES)
		return err_sys(e, "read the vector registers of thread %d", tid);
	if (arch_regset(PTRACE_GETREGSET, tid, NT_ARM_TLS, &t->tls, 8) < 0)
		return err_sys(e, "read the TLS register of thread %d", tid);
	t->vector_bytes = VECTOR_BYTES;
	return 0;
}

long arch_call_result(const uint64_t *registers)
{
	return (long)registers[0];
}

uint64_t arch_get_pc(const uint64_t *registers)
{
	return registers[PC];
}

uint64_t arch_get_sp(const uint64_t *registers)
{
	return registers[SP];
}

void arch_set_pc(uint64_t *registers, uint64_t pc)
{
	registers[PC] = pc;
}

/* The PC of a stopped thread already points at the interrupted instruction. */
void arch_restart_call(uint64_t *registers)
{
	(void)registers;
}

void arch_prepare_call(uint64_t *r, const struct arch_code *code, uint64_t frame, long number,
		       const uint64_t *args)
{
	for (unsigned i = 0; i < 6; i++)
		r[i] = args[i];
	r[8] = (uint64_t)number;
	r[LINK] = code->sig_return;
	r[SP] = arch_call_stack(frame);
	r[PC] = code->call;
}

void arch_find_code(struct arch_code *code, const void *bytes, size_t len, uint64_t at)
{
	static const uint32_t call[] = { 0xd4000001, 0xd65f03c0 }; /* svc 0; ret */
	static const uint32_t sig_return[] = { 0xd2801168,
					       0xd4000001 }; /* mov x8, 139; svc 0: in the vDSO */
	const char *p = bytes;

	for (size_t i = -at & 3; i + 8 <= len; i += 4) {
		if (!code->call && !memcmp(p + i, call, 8))
			code->call = at + i;
		if (!code->sig_return && !memcmp(p + i, sig_return, 8))
			code->sig_return = at + i;
	}
}

/* siginfo, then ucontext_t: flags, link, stack (24), mask (8 of 128), padding to 16, sigcontext. */
static size_t arch_put_context(char *p, const uint64_t *r, uint64_t mask, const void *vector)
{
	uint32_t record[2] = { FPSIMD_MAGIC, 8 + 8 + 512 };
	uint32_t invalid = 7; /* so that sigreturn does not change the alternate stack */
	char *context = p + SIGNAL_INFO, *saved = context + CONTEXT;

	memset(p, 0, SIGNAL_INFO + CONTEXT + 8 + WORDS * 8 + 4096);
	memcpy(context + 24, &invalid, 4);
	memcpy(context + 40, &mask, 8);
	memcpy(saved + 8, r, WORDS * 8);
	saved += (8 + WORDS * 8 + 15) & ~15;
	memcpy(saved, record, 8);
	if (vector) {
		/* status and control words come first in a frame and last in the register set */
		memcpy(saved + 8, (const char *)vector + 512, 8);
		memcpy(saved + 16, vector, 512);
	}
	return SIGNAL_INFO + CONTEXT + ((8 + WORDS * 8 + 15) & ~15) + 4096;
}

size_t arch_build_frame(void *frame, uint64_t at, const struct arch_code *code,
			const struct image_thread *t, const void *vector)
{
	(void)at;
	(void)code;
	return arch_put_context(frame, t->registers, t->signal_mask, vector);
}

size_t arch_build_exit_frame(void *frame, uint64_t at, const struct arch_code *code,
			     const struct image_thread *t)
{
	uint64_t r[WORDS] = { [8] = SYS_exit_group, [SP] = at, [PC] = code->call };

	(void)t;
	r[LINK] = code->sig_return;
	return arch_put_context(frame, r, ~UINT64_C(0), NULL);
}

uint64_t arch_call_stack(uint64_t at)
{
	return at;
}

uint64_t arch_frame_stack(uint64_t at)
{
	return at;
}

const char *arch_refuse(const struct image_thread *t, const void *vector)
{
	(void)vector;
	return t->registers[STATE] & 0x10 ? "a 32-bit program" : NULL;
}

int arch_check_thread(const struct image_thread *t, const void *vector)
{
	(void)vector;
	return t->vector_bytes == VECTOR_BYTES ? 0 : -1;
}

void arch_clone_args(uint64_t *args, uint64_t flags, uint64_t stack)
{
	const uint64_t in_order[] = { flags, stack, 0, 0, 0, 0 };

	memcpy(args, in_order, sizeof(in_order));
}
#endif
