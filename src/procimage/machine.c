/* machine.c - see machine.h. */
#include "procimage/machine.h"
#include "base/cleanup.h"
#include "base/sha256.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static int machine_read_boot(struct machine *m, struct err *e)
{
	auto_fd int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, m->boot, sizeof(m->boot) - 1);

	if (n <= 0)
		return err_sys(e, "the id of this boot");
	m->boot[strcspn(m->boot, "\n")] = 0;
	return 0;
}

/* Its end is that of the last segment, or of the section headers. */
static void machine_hash_vdso(struct machine *m)
{
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Phdr *p = h ? (const Elf64_Phdr *)((const char *)h + h->e_phoff) : NULL;
	uint8_t hash[SHA256_BYTES];
	struct sha256 s;
	uint64_t end = 0;

	if (!h)
		return;
	for (unsigned i = 0; i < h->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_offset + p[i].p_filesz > end)
			end = p[i].p_offset + p[i].p_filesz;
	sha256_init(&s);
	sha256_add(&s, h, end);
	sha256_end(&s, hash);
	memcpy(m->vdso, hash, sizeof(m->vdso));
}

static void machine_read_features(struct machine *m)
{
	m->feature[0] = getauxval(AT_HWCAP);
	m->feature[1] = getauxval(AT_HWCAP2);
#if defined(__x86_64__)
	unsigned a, b, c, d;

	if (__get_cpuid(1, &a, &b, &c, &d)) {
		m->feature[2] = c;
		m->feature[3] = d;
		if (c & bit_OSXSAVE) {
			unsigned low, high;

			__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
			m->feature[4] = (uint64_t)high << 32 | low;
		}
	}
	if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
		m->feature[5] = b;
		/* Bit 4, OSPKE, follows the kernel. */
		m->feature[6] = c;
		m->feature[7] = d;
	}
	if (__get_cpuid_count(0xd, 1, &a, &b, &c, &d))
		m->feature[8] = a;
	if (__get_cpuid(0x80000001, &a, &b, &c, &d))
		m->feature[9] = (uint64_t)c << 32 | d;
#endif
}

int machine_read(struct machine *m, struct err *e)
{
	struct utsname u;
	struct timespec t;

	*m = (struct machine){ 0 };
	if (uname(&u) < 0)
		return err_sys(e, "the name of the kernel");
	snprintf(m->release, sizeof(m->release), "%s", u.release);
	machine_hash_vdso(m);
	machine_read_features(m);
	clock_gettime(CLOCK_MONOTONIC, &t);
	m->monotonic_ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	return machine_read_boot(m, e);
}

int machine_check(const struct machine *was, const struct machine *now, struct err *e)
{
	for (unsigned i = 0; i < MACHINE_FEATURES; i++)
		if (was->feature[i] & ~now->feature[i])
			return err_set(e, ERR_CONFLICT,
				       "the processor lacks features of the one on which the "
				       "programs started (group %u: %#llx)",
				       i, (unsigned long long)(was->feature[i] & ~now->feature[i]));
	if (memcmp(was->vdso, now->vdso, sizeof(was->vdso)) != 0)
		return err_set(e, ERR_CONFLICT,
			       "the programs have code of the kernel %.70s mapped, this is %.70s",
			       was->release, now->release);
	return 0;
}
