/* machine.c - see machine.h. */
#include "procimage/machine.h"
#include "base/sha256.h"
#include "procimage/program_clock.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/utsname.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static uint64_t machine_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
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

int machine_read(struct machine *m, const char *boot, struct err *e)
{
	struct utsname u;

	*m = (struct machine){ 0 };
	if (uname(&u) < 0)
		return err_sys(e, "the name of the kernel");
	snprintf(m->release, sizeof(m->release), "%s", u.release);
	machine_hash_vdso(m);
	machine_read_features(m);
	m->monotonic_ns = machine_clock(CLOCK_MONOTONIC);
	m->raw_ns = machine_clock(CLOCK_MONOTONIC_RAW);
	m->boottime_ns = machine_clock(CLOCK_BOOTTIME);
	snprintf(m->boot, sizeof(m->boot), "%s", boot);
	return 0;
}

int machine_check(const struct machine *was, const struct machine *now, struct err *e)
{
	for (unsigned i = 0; i < MACHINE_FEATURES; i++)
		if (was->feature[i] & ~now->feature[i])
			return err_set(e, ERR_CONFLICT,
				       "the processor lacks features of the one on which the "
				       "programs started (group %u: %#llx)",
				       i, (unsigned long long)(was->feature[i] & ~now->feature[i]));
	return 0;
}

int machine_is_other_kernel(const struct machine *was, const struct machine *now)
{
	return memcmp(was->vdso, now->vdso, sizeof(was->vdso)) != 0;
}

void machine_continue_clock(const struct machine *was, const struct machine *now,
			    struct program_clock *clock)
{
	int64_t raw = (int64_t)(was->raw_ns - now->raw_ns);
	int64_t monotonic = (int64_t)(was->monotonic_ns - now->monotonic_ns);

	/* The id of the boot is that of the host, also for a daemon in a time namespace of its own. */
	if (!strcmp(was->boot, now->boot) && monotonic <= 0)
		return;
	/* Both have one offset; the second one differs from the first by what was corrected. */
	clock->monotonic_ns += raw > monotonic ? raw : monotonic;
	clock->boottime_ns += (int64_t)(was->boottime_ns - now->boottime_ns);
}
