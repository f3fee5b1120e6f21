/* memory.h - what the whole machine uses, from /proc/meminfo, in KiB. */
#pragma once

struct memory {
	long total, free, available, buffers, cached;
	long slab, page_tables, kernel_stack, percpu, anon, shmem;
	int settled; /* the reading had stopped changing */
};

/* Everything that is not free, less the page cache of files (it is dropped first, and what is
 * left of it belongs to the files). Tmpfs and all slab count as used. */
long memory_used(const struct memory *m);
/* The sum of what the kernel names: slab, page tables, stacks, per-cpu, anonymous, tmpfs. */
long memory_parts(const struct memory *m);
/* Drops caches and reads until the figures no longer change; if they never settle, returns the
 * lowest of all readings: other load only adds to them. */
struct memory memory_settle(void);
