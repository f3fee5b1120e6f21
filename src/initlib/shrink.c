/* shrink.c - see shrink.h.
 *
 *   0x400000   text and constants     not writable: the guard below the stack
 *              stack (start.S)        the lowest writable memory
 *              variables, scratch     what an idle init touches: two pages with the stack's last
 *              LAZY ones
 *   _end       nothing                from here on, up to where the kernel put its stack and vdso
 *
 * What is unmapped is not needed: arguments were read, there is no environment, init reads the
 * time with a system call, and without signal handlers there is no sigreturn (which the vdso has
 * on aarch64). On the host, ps shows the name of init in brackets: its command line was on that
 * stack. */
#include "initlib/shrink.h"
#include "initlib/sys.h"
#include "initlib/str.h"

#include <linux/auxvec.h>
#include <linux/elf.h>

extern char init_stack[], _end[]; /* start.S, and the linker's */

enum { NO_GUARD = 70 };

static unsigned long page; /* bytes; 4096 nearly everywhere, up to 65536 on aarch64 */

/* A value of the auxiliary vector, which follows arguments and environment. 0: there is none. */
static unsigned long shrink_aux(const long *given, unsigned long type)
{
	const unsigned long *at = (const unsigned long *)given + 1 + given[0] + 1;

	while (*at++) /* the environment and its NULL */
		;
	for (; at[0] != AT_NULL; at += 2)
		if (at[0] == type)
			return at[1];
	return 0;
}

static unsigned long shrink_up(unsigned long at)
{
	return (at + page - 1) & -page;
}

static unsigned long vdso_end(unsigned long at)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)at;
	const Elf64_Phdr *part = (const Elf64_Phdr *)(at + head->e_phoff);
	unsigned long end = at;
	int i;

	for (i = 0; i < head->e_phnum; i++)
		if (part[i].p_type == PT_LOAD && at + part[i].p_vaddr + part[i].p_memsz > end)
			end = at + part[i].p_vaddr + part[i].p_memsz;
	return end;
}

/* An overflow of the stack would overwrite data that is below the stack. */
static int stack_is_lowest(const long *given)
{
	const Elf64_Phdr *part = (const Elf64_Phdr *)shrink_aux(given, AT_PHDR);
	unsigned long i, n = shrink_aux(given, AT_PHNUM);

	for (i = 0; i < n; i++)
		if (part[i].p_type == PT_LOAD && part[i].p_flags & PF_W &&
		    part[i].p_vaddr < (unsigned long)init_stack)
			return 0;
	return n > 0;
}

void slim_down(const long *given)
{
	unsigned long name = shrink_aux(given, AT_EXECFN),
		      vdso = shrink_aux(given, AT_SYSINFO_EHDR);
	unsigned long from, end;

	page = shrink_aux(given, AT_PAGESZ);
	if (!stack_is_lowest(given))
		sys_exit(NO_GUARD);
	if (!page || !name)
		return;
	/* The program's name is the last string on the stack, in its highest page. The vdso is above it
	 * on x86_64 and below on aarch64, with its data right before it. */
	end = name + strlen((const char *)name) + 1;
	if (vdso && vdso_end(vdso) > end)
		end = vdso_end(vdso);
	from = shrink_up((unsigned long)_end);
	end = shrink_up(end);
	/* Where the kernel has sealed the vdso (an option since Linux 6.15) this fails, and all
	 * stays as it was: that costs memory and nothing else, so the box is started. */
	sys_unmap((void *)from, end - from);
}

/* The kernel would round the length up, and free bytes of the next object. */
void slim_forget(void *p, size_t n)
{
	unsigned long from = shrink_up((unsigned long)p), end = ((unsigned long)p + n) & -page;

	if (page && from < end)
		sys_madvise((void *)from, end - from, MADV_DONTNEED);
}
