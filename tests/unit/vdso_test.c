/* vdso_test.c - the code of another kernel: its functions become system calls, and bytes that are no such code are refused. */
#include "procimage/vdso.h"
#include "tap.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Those of this kernel. */
static uint8_t *copy_own(size_t *n)
{
	const void *own = vdso_own(n);
	uint8_t *b =
		mmap(NULL, *n + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(b, own, *n);
	return b;
}

#if defined(__x86_64__)
static void *find(uint8_t *b, const char *name)
{
	const Elf64_Ehdr *h = (const void *)b;
	const Elf64_Shdr *s = (const void *)(b + h->e_shoff);

	for (unsigned i = 0; i < h->e_shnum; i++)
		for (uint64_t k = 0; s[i].sh_type == SHT_DYNSYM && k < s[i].sh_size / 24; k++) {
			const Elf64_Sym *x =
				(const Elf64_Sym *)(const void *)(b + s[i].sh_offset) + k;

			if (!strcmp((const char *)b + s[s[i].sh_link].sh_offset + x->st_name, name))
				return b + x->st_value;
		}
	return NULL;
}

/* Without its data, the code as it was would fail or return another time. */
TEST(replaced_functions_work_without_the_data_of_their_kernel)
{
	int (*gettime)(clockid_t, struct timespec *);
	struct timespec before, here, after;
	time_t (*seconds)(time_t *);
	long (*getcpu)(unsigned *, unsigned *, void *);
	unsigned cpu = ~0U;
	struct err e;
	size_t n;
	uint8_t *b = copy_own(&n);

	CHECK(n > 0 && vdso_replace(b, n, &e) == 0);
	CHECK(mprotect(b, n, PROT_READ | PROT_EXEC) == 0);
	gettime = (int (*)(clockid_t, struct timespec *))find(b, "__vdso_clock_gettime");
	seconds = (time_t(*)(time_t *))find(b, "__vdso_time");
	getcpu = (long (*)(unsigned *, unsigned *, void *))find(b, "__vdso_getcpu");
	CHECK(gettime && seconds && getcpu);
	clock_gettime(CLOCK_MONOTONIC, &before);
	CHECK(gettime(CLOCK_MONOTONIC, &here) == 0);
	clock_gettime(CLOCK_MONOTONIC, &after);
	CHECK(here.tv_sec >= before.tv_sec && here.tv_sec <= after.tv_sec);
	CHECK(gettime(CLOCK_REALTIME_COARSE, &here) == 0);
	CHECK(seconds(NULL) >= here.tv_sec && here.tv_sec > 1000000000);
	CHECK(getcpu(&cpu, NULL, NULL) == 0 && cpu < 100000);
	munmap(b, n + 4096);
}

TEST(changed_bytes_are_refused_or_stay_inside_of_the_code)
{
	struct err e;
	size_t n;
	uint8_t *b = copy_own(&n), *own = copy_own(&n);
	uint32_t random = 1;

	for (unsigned turn = 0; turn < 20000; turn++) {
		for (unsigned k = 0; k < 4; k++) {
			random = random * 1664525 + 1013904223;
			/* Headers, tables and sections lie at both ends. */
			b[(random >> 8) % 2 ? (random >> 9) % 1024 : n - 1 - (random >> 9) % 1500] =
				(uint8_t)(random >> 24);
		}
		(void)!vdso_replace(b, turn % 3 ? n : random % n, &e);
		for (unsigned k = 0; k < 4096; k++)
			if (b[n + k]) {
				CHECK(!"it has written beyond the end");
				return;
			}
		if (turn % 8 == 0)
			memcpy(b, own, n);
	}
	memset(b, 0, n);
	CHECK(vdso_replace(b, n, &e) < 0);
	CHECK(vdso_replace(b, 0, &e) < 0);
}
#else
TEST(programs_continue_on_their_kernel_only)
{
	struct err e;
	size_t n;
	uint8_t *b = copy_own(&n);

	CHECK(vdso_replace(b, n, &e) < 0);
}
#endif
