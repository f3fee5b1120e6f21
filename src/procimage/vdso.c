/* vdso.c - see vdso.h.
 *
 * A page of time data belongs to the code and changes with it, so the pages that the old code reads are empty in a copy: a thread that was
 * stopped inside of a function finds no clock there, and asks the kernel by a call. */
#include "procimage/vdso.h"
#include "base/cleanup.h"

#include <elf.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

const void *vdso_own(size_t *bytes)
{
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Phdr *p = h ? (const Elf64_Phdr *)((const char *)h + h->e_phoff) : NULL;
	size_t end = 0, page = (size_t)sysconf(_SC_PAGESIZE);

	for (unsigned i = 0; h && i < h->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_offset + p[i].p_filesz > end)
			end = p[i].p_offset + p[i].p_filesz;
	/* The headers of its sections may lie after the last segment, in pages that are mapped as well. */
	if (h && h->e_shoff + (size_t)h->e_shnum * h->e_shentsize > end)
		end = h->e_shoff + (size_t)h->e_shnum * h->e_shentsize;
	*bytes = (end + page - 1) & ~(page - 1);
	return h;
}

#if defined(__x86_64__)
enum { STUB = 8 }; /* mov eax, number; syscall; ret */

static long vdso_call_of(const char *name)
{
	static const struct {
		const char *name;
		long number;
	} rows[] = {
		{ "clock_gettime", SYS_clock_gettime },
		{ "gettimeofday", SYS_gettimeofday },
		{ "time", SYS_time },
		{ "getcpu", SYS_getcpu },
		{ "clock_getres", SYS_clock_getres },
		{ "getrandom", 318 },
	};

	if (!strncmp(name, "__vdso_", 7))
		name += 7;
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		if (!strcmp(name, rows[i].name))
			return rows[i].number;
	return -1; /* it uses no data of the kernel */
}

static void vdso_write_stub(uint8_t *at, long number)
{
	uint8_t stub[STUB] = {
		0xb8, (uint8_t)number, (uint8_t)(number >> 8), 0, 0, 0x0f, 0x05, 0xc3
	};

	memcpy(at, stub, STUB);
}

static const Elf64_Shdr *vdso_section(const uint8_t *b, size_t n, unsigned i)
{
	const Elf64_Ehdr *h = (const void *)b;
	uint64_t at = h->e_shoff + (uint64_t)i * sizeof(Elf64_Shdr);
	const Elf64_Shdr *s;

	if (i >= h->e_shnum || h->e_shoff % 8 || at > n || sizeof(*s) > n - at)
		return NULL;
	s = (const void *)(b + at);
	return s->sh_offset > n || s->sh_size > n - s->sh_offset ? NULL : s;
}

static int vdso_replace_symbols(uint8_t *b, size_t n, const Elf64_Shdr *table,
				const Elf64_Shdr *strings)
{
	const Elf64_Sym *s = (const void *)(b + table->sh_offset);
	const char *names = (const char *)b + strings->sh_offset;
	int found = 0;

	for (uint64_t i = 0; i < table->sh_size / sizeof(*s); i++) {
		Elf64_Sym x = s[i];
		long number;

		if (ELF64_ST_TYPE(x.st_info) != STT_FUNC || !x.st_shndx ||
		    x.st_name >= strings->sh_size)
			continue;
		number = vdso_call_of(names + x.st_name);
		if (number < 0)
			continue;
		if (x.st_size < STUB || x.st_value > n || STUB > n - x.st_value)
			return -1;
		vdso_write_stub(b + x.st_value, number);
		found++;
	}
	return found;
}

int vdso_replace(void *bytes, size_t n, struct err *e)
{
	const Elf64_Ehdr *h = bytes;
	uint8_t *b = bytes;

	if (n < sizeof(*h) || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 ||
	    h->e_shentsize != sizeof(Elf64_Shdr))
		return err_set(e, ERR_CONFLICT, "the code of the other kernel is no ELF file");
	for (unsigned i = 0; i < h->e_shnum; i++) {
		const Elf64_Shdr *s = vdso_section(b, n, i), *names;

		if (!s || s->sh_type != SHT_DYNSYM || s->sh_offset % 8)
			continue;
		names = vdso_section(b, n, s->sh_link);
		/* Names end inside of their section. */
		if (names && names->sh_size && !b[names->sh_offset + names->sh_size - 1] &&
		    vdso_replace_symbols(b, n, s, names) > 0)
			return 0;
	}
	return err_set(e, ERR_CONFLICT,
		       "the code of the other kernel has no functions that are known");
}
#else
int vdso_replace(void *bytes, size_t n, struct err *e)
{
	(void)bytes;
	(void)n;
	/* The kernel returns from signal handlers through the vDSO that it has mapped itself. */
	return err_set(e, ERR_CONFLICT,
		       "programs of this architecture continue on their kernel only");
}
#endif
