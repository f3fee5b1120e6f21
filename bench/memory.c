/* memory.c - see memory.h. */
#include "memory.h"

#include "base/cleanup.h"
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { READINGS = 20, PAUSE_MS = 700, STILL_KIB = 1024, STILL_READINGS = 3 };

static const struct field {
	const char *name;
	size_t offset;
} fields[] = {
	{ "MemTotal", offsetof(struct memory, total) },
	{ "MemFree", offsetof(struct memory, free) },
	{ "MemAvailable", offsetof(struct memory, available) },
	{ "Buffers", offsetof(struct memory, buffers) },
	{ "Cached", offsetof(struct memory, cached) },
	{ "Slab", offsetof(struct memory, slab) },
	{ "PageTables", offsetof(struct memory, page_tables) },
	{ "KernelStack", offsetof(struct memory, kernel_stack) },
	{ "Percpu", offsetof(struct memory, percpu) },
	{ "AnonPages", offsetof(struct memory, anon) },
	{ "Shmem", offsetof(struct memory, shmem) },
};

static struct memory read_now(void)
{
	struct memory m = { 0 };
	char line[128], name[64];
	FILE *f = fopen("/proc/meminfo", "re");
	long kib;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63[^:]: %ld", name, &kib) != 2)
			continue;
		for (unsigned i = 0; i < ARRAY_LEN(fields); i++)
			if (strcmp(fields[i].name, name) == 0)
				*(long *)((char *)&m + fields[i].offset) = kib;
	}
	if (f)
		fclose(f);
	return m;
}

long memory_used(const struct memory *m)
{
	return m->total - m->free - m->buffers - (m->cached - m->shmem);
}

long memory_parts(const struct memory *m)
{
	return m->slab + m->page_tables + m->kernel_stack + m->percpu + m->anon + m->shmem;
}

/* Without the permission to drop caches, clean dentries count as used: figures may be too high. */
static void drop_caches(void)
{
	auto_fd int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "3", 1) < 0)
		return;
}

struct memory memory_settle(void)
{
	struct memory lowest = { 0 }, now;
	long window[STILL_READINGS] = { 0 };

	for (int i = 0; i < READINGS; i++) {
		long low, high;

		drop_caches();
		now = read_now();
		if (i == 0 || memory_used(&now) < memory_used(&lowest))
			lowest = now;
		window[i % STILL_READINGS] = memory_used(&now);
		low = high = window[0];
		for (int w = 1; w < STILL_READINGS; w++) {
			low = window[w] < low ? window[w] : low;
			high = window[w] > high ? window[w] : high;
		}
		if (i + 1 >= STILL_READINGS && high - low <= STILL_KIB) {
			now.settled = 1;
			return now;
		}
		poll(NULL, 0, PAUSE_MS);
	}
	return lowest;
}
