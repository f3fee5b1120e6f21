/* guard.c - see guard.h. */
#include "zygote/guard.h"

#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#if defined(__x86_64__)
__attribute__((no_stack_protector)) static void set_canary(uintptr_t canary)
{
	__asm__ volatile("mov %0, %%fs:0x28" : : "r"(canary) : "memory");
}
#elif defined(__aarch64__)
extern uintptr_t __stack_chk_guard; /* owned by the dynamic loader, read-only since the start */

__attribute__((no_stack_protector)) static void set_canary(uintptr_t canary)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *at = (void *)((uintptr_t)&__stack_chk_guard & ~(page - 1));

	if (mprotect(at, page, PROT_READ | PROT_WRITE) < 0)
		_exit(70);
	__stack_chk_guard = canary;
	if (mprotect(at, page, PROT_READ) < 0)
		_exit(70);
}
#else
#error "guard.c knows aarch64 and x86_64"
#endif

__attribute__((no_stack_protector)) void guard_renew(void)
{
	struct {
		unsigned char random[16]; /* what AT_RANDOM points to */
		uintptr_t canary;
	} fresh;
	void *at = (void *)getauxval(AT_RANDOM);

	if (!at || getrandom(&fresh, sizeof(fresh), 0) != (ssize_t)sizeof(fresh))
		_exit(70);
	memcpy(at, fresh.random, sizeof(fresh.random));
	set_canary(fresh.canary & ~(uintptr_t)0xff); /* the first byte is 0, which ends strings */
}
