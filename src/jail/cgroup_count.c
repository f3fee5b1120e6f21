/* cgroup_count.c - the counters of a box's cgroup: read once, or repeatedly from files that stay
 * open; and whether they are those of an unused one. */
#include "jail/cgroup_life.h"
#include "base/cleanup.h"

#include <assert.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A number after "key " in a flat file, or the file's only number if key is NULL. */
static uint64_t value_in(const char *text, const char *key)
{
	unsigned long long value;
	const char *at = text;
	char *end;

	if (key) {
		size_t n = strlen(key);

		while (at && (strncmp(at, key, n) != 0 || at[n] != ' ')) {
			at = strchr(at, '\n');
			at = at ? at + 1 : NULL;
		}
		if (!at)
			return UINT64_MAX;
		at += n;
	}
	value = strtoull(at, &end, 10);
	return end == at ? UINT64_MAX : value;
}

uint64_t cgroup_number(int dir, const char *id, const char *file, const char *key)
{
	char path[96], text[2048];

	snprintf(path, sizeof(path), "%s/%s", id, file);
	if (dir < 0 || cgroup_get(dir, path, text, sizeof(text)) < 0)
		return UINT64_MAX;
	return value_in(text, key);
}

static uint64_t number_again(int fd, const char *key)
{
	char text[2048];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return UINT64_MAX;
	text[n] = 0;
	return value_in(text, key);
}

enum { MEMORY_NOW = 3, MEMORY_PEAK, CPU_USED = 8 };

/* The number of processes comes first: if it is 0, the others no longer change, except for the
 * memory. */
static const struct figure {
	int version; /* 0: both */
	enum cgroup_ctl ctl;
	const char *file, *key;
	size_t to;
	unsigned per; /* the kernel's name for one of ours */
} figures[] = {
#define TO(field) offsetof(struct cgroup_counts, field)
	{ 0, CG_PIDS, "pids.current", NULL, TO(pids_now), 1 },
	{ 0, CG_PIDS, "pids.peak", NULL, TO(pids_peak), 1 },
	{ 0, CG_PIDS, "pids.events", "max", TO(pids_hits), 1 },
	[MEMORY_NOW] = { 1, CG_MEMORY, "memory.usage_in_bytes", NULL, TO(mem_now), 1 },
	[MEMORY_PEAK] = { 1, CG_MEMORY, "memory.max_usage_in_bytes", NULL, TO(mem_peak), 1 },
	{ 1, CG_MEMORY, "memory.oom_control", "oom_kill", TO(oom_kills), 1 },
	{ 1, CG_MEMORY, "memory.failcnt", NULL, TO(mem_hits), 1 },
	{ 1, CG_CPU, "cpu.stat", "throttled_time", TO(throttled_us), 1000 },
	[CPU_USED] = { 1, CG_CPUACCT, "cpuacct.usage", NULL, TO(cpu_us), 1000 },
	{ 2, CG_MEMORY, "memory.current", NULL, TO(mem_now), 1 },
	{ 2, CG_MEMORY, "memory.peak", NULL, TO(mem_peak), 1 },
	{ 2, CG_MEMORY, "memory.events", "oom_kill", TO(oom_kills), 1 },
	{ 2, CG_MEMORY, "memory.events", "max", TO(mem_hits), 1 },
	{ 2, CG_CPU, "cpu.stat", "usage_usec", TO(cpu_us), 1 },
	{ 2, CG_CPU, "cpu.stat", "throttled_usec", TO(throttled_us), 1 },
#undef TO
};
static_assert(ARRAY_LEN(figures) <= CG_FIGURES, "a figure without a place for its descriptor");

static int has_figure(const struct cgroups *cs, unsigned i)
{
	return (!figures[i].version || figures[i].version == cs->version) &&
	       cs->dir[figures[i].ctl] >= 0;
}

static void cgroup_count_note(unsigned i, uint64_t value, struct cgroup_counts *out)
{
	/* Rounds up: a small value must not become 0. */
	if (value != UINT64_MAX)
		value = value / figures[i].per + (value % figures[i].per != 0);
	*(uint64_t *)(void *)((char *)out + figures[i].to) = value;
}

void cgroup_count(const struct cgroups *cs, const char *id, struct cgroup_counts *out)
{
	memset(out, 0xff, sizeof(*out));
	for (unsigned i = 0; i < ARRAY_LEN(figures); i++)
		if (has_figure(cs, i))
			cgroup_count_note(i,
					  cgroup_number(cs->dir[figures[i].ctl], id,
							figures[i].file, figures[i].key),
					  out);
}

int cgroup_open(const struct cgroups *cs, const char *id, struct cgroup_files *out, struct err *e)
{
	char path[96];

	out->ntasks = cgroup_tasks(cs, id, out->tasks, e);
	if (out->ntasks < 0)
		return -1;
	for (unsigned i = 0; i < CG_FIGURES; i++) {
		out->figures[i] = -1;
		if (i >= ARRAY_LEN(figures) || !has_figure(cs, i))
			continue;
		snprintf(path, sizeof(path), "%s/%s", id, figures[i].file);
		out->figures[i] =
			openat(cs->dir[figures[i].ctl], path,
			       (i == MEMORY_PEAK || i == CPU_USED ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	}
	return 0;
}

void cgroup_close(struct cgroup_files *f)
{
	while (f->ntasks > 0)
		close(f->tasks[--f->ntasks]);
	for (unsigned i = 0; i < CG_FIGURES; i++)
		own_close_fd(&f->figures[i]);
}

void cgroup_count_open(const struct cgroup_files *f, struct cgroup_counts *out)
{
	memset(out, 0xff, sizeof(*out));
	for (unsigned i = 0; i < ARRAY_LEN(figures); i++)
		if (f->figures[i] >= 0)
			cgroup_count_note(i, number_again(f->figures[i], figures[i].key), out);
}

uint64_t cgroup_memory_now(const struct cgroup_files *f)
{
	return number_again(f->figures[MEMORY_NOW], NULL);
}

int cgroup_reset(const struct cgroup_files *f, struct err *e)
{
	if (pwrite(f->figures[MEMORY_PEAK], "0", 1, 0) != 1)
		return err_sys(e, "write '0' to %s", figures[MEMORY_PEAK].file);
	if (f->figures[CPU_USED] >= 0 && pwrite(f->figures[CPU_USED], "0", 1, 0) != 1)
		return err_sys(e, "write '0' to %s", figures[CPU_USED].file);
	return 0;
}

uint64_t cgroup_restart_cpu(const struct cgroups *cs, const char *id, const struct cgroup_files *f)
{
	uint64_t used;
	char path[96];
	struct err ignored;

	if (!cgroups_can_count_cpu(cs))
		return 0;
	snprintf(path, sizeof(path), "%s/%s", id, figures[CPU_USED].file);
	if (cs->version == 1 && f && f->figures[CPU_USED] >= 0 &&
	    pwrite(f->figures[CPU_USED], "0", 1, 0) == 1)
		return 0;
	if (cs->version == 1 && cgroup_put(cs->dir[CG_CPUACCT], path, "0", &ignored) == 0)
		return 0;
	used = cgroup_number(cs->dir[cs->version == 2 ? CG_CPU : CG_CPUACCT], id,
			     cs->version == 2 ? "cpu.stat" : figures[CPU_USED].file,
			     cs->version == 2 ? "usage_usec" : NULL);
	if (used == UINT64_MAX)
		return 0;
	return cs->version == 2 ? used : used / figures[CPU_USED].per;
}

int cgroup_is_empty(const struct cgroups *cs, const char *id)
{
	return cgroup_number(cs->dir[CG_PIDS], id, "pids.current", NULL) == 0;
}

/* The kernel releases charges without an owner late: some pages per processor, mounts, and what
 * is freed in the background. More is file cache, which would be charged to the next box. */
#define LEFT_BYTES (4u << 20)

int cgroup_is_clean(const struct cgroups *cs, const struct cgroup_counts *n)
{
	/* Without these two an unused cgroup cannot be recognised. */
	if (cs->version != 1 || cs->dir[CG_PIDS] < 0 || cs->dir[CG_MEMORY] < 0)
		return 0;
	return n->pids_now == 0 && n->pids_hits == 0 && n->pids_peak != UINT64_MAX &&
	       n->oom_kills == 0 && n->mem_hits == 0 && n->mem_now <= LEFT_BYTES &&
	       (cs->dir[CG_CPU] < 0 || n->throttled_us == 0);
}
