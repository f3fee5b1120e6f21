/* arch_x86_64.c - see arch.h. Compiled to nothing elsewhere. */
#if defined(__x86_64__)
#include "procimage/arch.h"
#include "base/err.h"

#include <asm/prctl.h>
#include <cpuid.h>
#include <elf.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

/* Results of an interrupted call that the kernel handles before a program sees them. */
enum { RESTART_SYS = 512, RESTART_NO_INTR = 513, RESTART_NO_HAND = 514, RESTART_BLOCK = 516 };

enum { /* words of user_regs_struct */
       R15,
       R14,
       R13,
       R12,
       RBP,
       RBX,
       R11,
       R10,
       R9,
       R8,
       RAX,
       RCX,
       RDX,
       RSI,
       RDI,
       ORIG_RAX,
       RIP,
       CS,
       FLAGS,
       RSP,
       SS,
       FS_BASE,
       GS_BASE,
       DS,
       ES,
       FS,
       GS,
       WORDS
};
_Static_assert(sizeof(struct user_regs_struct) == WORDS * 8, "registers");
_Static_assert((int)WORDS <= (int)IMAGE_REGISTERS, "room for registers");

enum {
	XSTATE_SOFTWARE =
		464, /* bytes for software: here the kernel says which features there are */
	XSTATE_HEADER = 512,
	XSTATE_LEAST = 576,
	XSTATE_MAGIC1 = 0x46505853,
	XSTATE_MAGIC2 = 0x46505845,
	FEATURE_TILE_DATA = 18,
	UC_FP_XSTATE = 1,
	UC_SIGCONTEXT_SS = 2,
	UC_STRICT_RESTORE_SS = 4,
	CONTEXT_BYTES = 304,
	VECTOR_AT = 320, /* multiple of 64 after the context */
	RETURN_AT = 64,  /* the context begins here, after the word to which a call returns */
};

struct context { /* struct ucontext of the kernel with its sigcontext_64 */
	uint64_t flags, link;
	uint64_t stack_at;
	uint32_t stack_flags, stack_pad;
	uint64_t stack_bytes;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip,
		eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t error, trap, old_mask, fault, vector, reserved[8];
	uint64_t mask;
};
_Static_assert(sizeof(struct context) == CONTEXT_BYTES, "ucontext");

static int arch_regset(int request, pid_t tid, int set, void *at, size_t *len)
{
	struct iovec iov = { at, *len };

	if (ptrace(request, tid, set, &iov) < 0)
		return -1;
	*len = iov.iov_len;
	return 0;
}

int arch_read_registers(pid_t tid, uint64_t *registers, struct err *e)
{
	size_t len = WORDS * 8;

	if (arch_regset(PTRACE_GETREGSET, tid, NT_PRSTATUS, registers, &len) < 0)
		return err_sys(e, "read the registers of thread %d", tid);
	return 0;
}

int arch_write_registers(pid_t tid, const uint64_t *registers, struct err *e)
{
	size_t len = WORDS * 8;

	if (arch_regset(PTRACE_SETREGSET, tid, NT_PRSTATUS, (void *)(uintptr_t)registers, &len) < 0)
		return err_sys(e, "write the registers of thread %d", tid);
	return 0;
}

int arch_read_thread(pid_t tid, struct image_thread *t, void *vector, struct err *e)
{
	size_t len = IMAGE_VECTOR;

	if (arch_read_registers(tid, t->registers, e) < 0)
		return -1;
	if (arch_regset(PTRACE_GETREGSET, tid, NT_X86_XSTATE, vector, &len) < 0)
		return err_sys(e, "read the vector registers of thread %d", tid);
	if (len < XSTATE_LEAST)
		return err_set(e, ERR_SYS, "vector registers of thread %d have %zu bytes", tid,
			       len);
	t->vector_bytes = (uint32_t)len;
	return 0;
}

long arch_call_result(const uint64_t *registers)
{
	return (long)registers[RAX];
}

uint64_t arch_get_pc(const uint64_t *registers)
{
	return registers[RIP];
}

uint64_t arch_get_sp(const uint64_t *registers)
{
	return registers[RSP];
}

void arch_set_pc(uint64_t *registers, uint64_t pc)
{
	registers[RIP] = pc;
}

void arch_restart_call(uint64_t *r)
{
	long result = (long)r[RAX];

	if ((long)r[ORIG_RAX] >= 0 && (result == -RESTART_SYS || result == -RESTART_NO_INTR ||
				       result == -RESTART_NO_HAND || result == -RESTART_BLOCK)) {
		/* restart_syscall() would continue a sleep of the source that a copy does not have. */
		r[RAX] = r[ORIG_RAX] == SYS_restart_syscall ? (uint64_t)-4 : r[ORIG_RAX];
		if (r[ORIG_RAX] != SYS_restart_syscall)
			r[RIP] -= 2;
	}
	r[ORIG_RAX] = (uint64_t)-1;
}

void arch_prepare_call(uint64_t *r, const struct arch_code *code, uint64_t frame, long number,
		       const uint64_t *args)
{
	r[RIP] = code->call;
	r[RSP] = arch_call_stack(frame);
	r[RAX] = (uint64_t)number;
	r[ORIG_RAX] = (uint64_t)-1;
	r[RDI] = args[0];
	r[RSI] = args[1];
	r[RDX] = args[2];
	r[R10] = args[3];
	r[R8] = args[4];
	r[R9] = args[5];
}

void arch_find_code(struct arch_code *code, const void *bytes, size_t len, uint64_t at)
{
	static const unsigned char call[] = { 0x0f, 0x05, 0xc3 };
	static const unsigned char ret_long[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const unsigned char ret_short[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	const char *found;

	if (!code->call && (found = memmem(bytes, len, call, sizeof(call))))
		code->call = at + (uint64_t)(found - (const char *)bytes);
	if (!code->sig_return && ((found = memmem(bytes, len, ret_long, sizeof(ret_long))) ||
				  (found = memmem(bytes, len, ret_short, sizeof(ret_short)))))
		code->sig_return = at + (uint64_t)(found - (const char *)bytes);
}

/* Bytes of vector registers that a frame of this process has: features that need a permission of
 * their own (AMX) are at the end and are not in it. */
static uint32_t arch_frame_vector_bytes(uint64_t features)
{
	uint32_t most = XSTATE_LEAST;

	for (unsigned i = 2; i < 63; i++) {
		uint32_t size, offset, flags, d;

		if (!(features >> i & 1) || i == FEATURE_TILE_DATA)
			continue;
		if (__get_cpuid_count(0xd, i, &size, &offset, &flags, &d) && !(flags & 1) &&
		    offset + size > most)
			most = offset + size;
	}
	return most;
}

static size_t arch_put_vector(char *to, const struct image_thread *t, const void *vector)
{
	uint64_t features;
	uint32_t len, magic2 = XSTATE_MAGIC2;
	uint32_t software[4] = { XSTATE_MAGIC1 };

	memcpy(&features, (const char *)vector + XSTATE_SOFTWARE, 8);
	features &= ~(UINT64_C(1) << FEATURE_TILE_DATA);
	len = arch_frame_vector_bytes(features);
	if (len > t->vector_bytes)
		len = t->vector_bytes;
	memcpy(to, vector, len);
	software[1] = len + 4;
	memcpy(to + XSTATE_SOFTWARE, software, 8);
	memcpy(to + XSTATE_SOFTWARE + 8, &features, 8);
	memcpy(to + XSTATE_SOFTWARE + 16, &len, 4);
	memset(to + XSTATE_SOFTWARE + 20, 0, 28);
	memcpy(to + len, &magic2, 4);
	return len + 4;
}

size_t arch_build_frame(void *frame, uint64_t at, const struct arch_code *code,
			const struct image_thread *t, const void *vector)
{
	const uint64_t *r = t->registers;
	char *p = frame;
	struct context c = {
		.flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS,
		/* Invalid, so that sigreturn does not change the alternate stack. */
		.stack_flags = 7,
		.r8 = r[R8],
		.r9 = r[R9],
		.r10 = r[R10],
		.r11 = r[R11],
		.r12 = r[R12],
		.r13 = r[R13],
		.r14 = r[R14],
		.r15 = r[R15],
		.rdi = r[RDI],
		.rsi = r[RSI],
		.rbp = r[RBP],
		.rbx = r[RBX],
		.rdx = r[RDX],
		.rax = r[RAX],
		.rcx = r[RCX],
		.rsp = r[RSP],
		.rip = r[RIP],
		.eflags = r[FLAGS],
		.cs = (uint16_t)r[CS],
		.gs = (uint16_t)r[GS],
		.fs = (uint16_t)r[FS],
		.ss = (uint16_t)r[SS],
		.vector = at + RETURN_AT + VECTOR_AT,
		.mask = t->signal_mask,
	};

	memset(p, 0, RETURN_AT + VECTOR_AT);
	memcpy(p + RETURN_AT - 8, &code->sig_return, 8);
	memcpy(p + RETURN_AT, &c, sizeof(c));
	return RETURN_AT + VECTOR_AT + arch_put_vector(p + RETURN_AT + VECTOR_AT, t, vector);
}

size_t arch_build_exit_frame(void *frame, uint64_t at, const struct arch_code *code,
			     const struct image_thread *t)
{
	struct context c = { .stack_flags = 7,
			     .flags = UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS,
			     .rax = SYS_exit_group,
			     .rip = code->call,
			     .rsp = arch_call_stack(at),
			     .eflags = 0x202,
			     .cs = (uint16_t)t->registers[CS],
			     .ss = (uint16_t)t->registers[SS],
			     .mask = ~UINT64_C(0) };
	char *p = frame;

	memset(p, 0, RETURN_AT + VECTOR_AT);
	memcpy(p + RETURN_AT - 8, &code->sig_return, 8);
	memcpy(p + RETURN_AT, &c, sizeof(c));
	return RETURN_AT + VECTOR_AT;
}

uint64_t arch_call_stack(uint64_t at)
{
	return at + RETURN_AT - 8;
}

uint64_t arch_frame_stack(uint64_t at)
{
	return at + RETURN_AT;
}

const char *arch_refuse(const struct image_thread *t, const void *vector)
{
	uint64_t used;

	memcpy(&used, (const char *)vector + XSTATE_HEADER, 8);
	if (used >> FEATURE_TILE_DATA & 1)
		return "AMX tile registers are in use";
	if (t->registers[CS] != 0x33)
		return "a 32-bit program";
	return NULL;
}

int arch_check_thread(const struct image_thread *t, const void *vector)
{
	uint64_t features;

	if (t->vector_bytes < XSTATE_LEAST || t->registers[CS] != 0x33)
		return -1;
	memcpy(&features, (const char *)vector + XSTATE_SOFTWARE, 8);
	return arch_frame_vector_bytes(features) + RETURN_AT + VECTOR_AT + 4 > ARCH_FRAME_MOST ? -1
											       : 0;
}

void arch_clone_args(uint64_t *args, uint64_t flags, uint64_t stack)
{
	const uint64_t in_order[] = { flags, stack, 0, 0, 0, 0 };

	memcpy(args, in_order, sizeof(in_order));
}
#endif
