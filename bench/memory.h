/* memory.h - the memory use of the whole machine, from /proc/meminfo, in KiB. */
#pragma once

struct memory {
	long total, free, available, buffers, cached;
	long slab, page_tables, kernel_stack, percpu, anon, shmem;
	int settled; /* the reading had stopped changing */
};

/* Memory that is not free, without the page cache of files, which is dropped before the
 * measurement. Tmpfs and all slab count as used. */
long memory_used(const struct memory *m);
/* The sum of the kernel's own figures: slab, page tables, stacks, per-cpu, anonymous, tmpfs. */
long memory_parts(const struct memory *m);
/* Drops caches and reads until the figures no longer change; if they never settle, returns the
 * lowest of all readings: other load only adds to them. */
struct memory memory_settle(void);
