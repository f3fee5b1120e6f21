/* restorer_sys.h - system calls, threads and rt_sigreturn for code without a C library. */
#pragma once
#include <stdint.h>

#if defined(__x86_64__)
static inline __attribute__((always_inline)) long restorer_sys(long nr, uint64_t a, uint64_t b,
							       uint64_t c, uint64_t d, uint64_t e,
							       uint64_t f)
{
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = e;
	register uint64_t r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

/* The child runs fn(arg) on its own stack and never returns. */
static inline __attribute__((always_inline)) long restorer_clone(uint64_t flags, uint64_t stack,
								 void (*fn)(void *, void *),
								 void *arg, void *arg2)
{
	uint64_t *top = (uint64_t *)(stack & ~UINT64_C(15)) - 4;
	register uint64_t r10 __asm__("r10") = 0;
	register uint64_t r8 __asm__("r8") = 0;
	long ret;

	top[0] = (uint64_t)(uintptr_t)fn;
	top[1] = (uint64_t)(uintptr_t)arg;
	top[2] = (uint64_t)(uintptr_t)arg2;
	top[3] = 0;
	__asm__ volatile("syscall\n"
			 "test %%rax, %%rax\n"
			 "jnz 1f\n"
			 "xor %%ebp, %%ebp\n"
			 "pop %%rax\n"
			 "pop %%rdi\n"
			 "pop %%rsi\n"
			 "call *%%rax\n"
			 "hlt\n"
			 "1:\n"
			 : "=a"(ret)
			 : "a"(56L), "D"(flags), "S"(top), "d"(0L), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline __attribute__((always_inline)) long restorer_clone3(uint64_t args, uint64_t size,
								  void (*fn)(void *), void *arg)
{
	register void (*r12)(void *) __asm__("r12") = fn;
	register void *r13 __asm__("r13") = arg;
	long ret;

	__asm__ volatile("syscall\n"
			 "test %%rax, %%rax\n"
			 "jnz 1f\n"
			 "xor %%ebp, %%ebp\n"
			 "mov %%r13, %%rdi\n"
			 "call *%%r12\n"
			 "hlt\n"
			 "1:\n"
			 : "=a"(ret)
			 : "a"(435L), "D"(args), "S"(size), "r"(r12), "r"(r13)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline __attribute__((always_inline, noreturn)) void restorer_sig_return(uint64_t stack,
										uint64_t tls)
{
	(void)tls; /* set by a call of the thread's list */
	__asm__ volatile("mov %0, %%rsp\n"
			 "mov $15, %%eax\n"
			 "syscall\n"
			 "hlt\n"
			 :
			 : "r"(stack)
			 : "memory");
	__builtin_unreachable();
}
#elif defined(__aarch64__)
static inline __attribute__((always_inline)) long restorer_sys(long nr, uint64_t a, uint64_t b,
							       uint64_t c, uint64_t d, uint64_t e,
							       uint64_t f)
{
	register uint64_t x8 __asm__("x8") = (uint64_t)nr;
	register uint64_t x0 __asm__("x0") = a;
	register uint64_t x1 __asm__("x1") = b;
	register uint64_t x2 __asm__("x2") = c;
	register uint64_t x3 __asm__("x3") = d;
	register uint64_t x4 __asm__("x4") = e;
	register uint64_t x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return (long)x0;
}

static inline __attribute__((always_inline)) long restorer_clone(uint64_t flags, uint64_t stack,
								 void (*fn)(void *, void *),
								 void *arg, void *arg2)
{
	uint64_t *top = (uint64_t *)(stack & ~UINT64_C(15)) - 4;
	register uint64_t x8 __asm__("x8") = 220;
	register uint64_t x0 __asm__("x0") = flags;
	register uint64_t x1 __asm__("x1") = (uint64_t)(uintptr_t)top;
	register uint64_t x2 __asm__("x2") = 0;
	register uint64_t x3 __asm__("x3") = 0;
	register uint64_t x4 __asm__("x4") = 0;

	top[0] = (uint64_t)(uintptr_t)fn;
	top[1] = (uint64_t)(uintptr_t)arg;
	top[2] = (uint64_t)(uintptr_t)arg2;
	top[3] = 0;
	__asm__ volatile("svc 0\n"
			 "cbnz x0, 1f\n"
			 "mov x29, xzr\n"
			 "ldp x9, x0, [sp]\n"
			 "ldr x1, [sp, 16]\n"
			 "blr x9\n"
			 "brk 0\n"
			 "1:\n"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "x9", "x30", "memory");
	return (long)x0;
}

static inline __attribute__((always_inline)) long restorer_clone3(uint64_t args, uint64_t size,
								  void (*fn)(void *), void *arg)
{
	register uint64_t x8 __asm__("x8") = 435;
	register uint64_t x0 __asm__("x0") = args;
	register uint64_t x1 __asm__("x1") = size;
	register void (*x10)(void *) __asm__("x10") = fn;
	register void *x11 __asm__("x11") = arg;

	__asm__ volatile("svc 0\n"
			 "cbnz x0, 1f\n"
			 "mov x29, xzr\n"
			 "mov x0, x11\n"
			 "blr x10\n"
			 "brk 0\n"
			 "1:\n"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x10), "r"(x11)
			 : "x30", "memory");
	return (long)x0;
}

static inline __attribute__((always_inline, noreturn)) void restorer_sig_return(uint64_t stack,
										uint64_t tls)
{
	__asm__ volatile("msr tpidr_el0, %1\n"
			 "mov sp, %0\n"
			 "mov x8, 139\n"
			 "svc 0\n"
			 "brk 0\n"
			 :
			 : "r"(stack), "r"(tls)
			 : "memory");
	__builtin_unreachable();
}
#endif
