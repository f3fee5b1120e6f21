/* cgroup_limit.c - the limits of a box: written into its cgroup, and changed while it runs. */
#include "jail/cgroup_life.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CPU_PERIOD_US 100000

enum format { BYTES, COUNT, CPU_QUOTA, CPU_MAX, ZERO };

/* No memory.high: a program that does not fit would be slowed for seconds before it is killed. */
static const struct knob {
	int version;
	enum cgroup_ctl ctl;
	const char *file;
	enum format format;
	int optional; /* may be missing: without swap accounting there is no such file */
} knobs[] = {
	{ 1, CG_PIDS, "pids.max", COUNT, 0 },
	{ 1, CG_CPU, "cpu.cfs_quota_us", CPU_QUOTA, 0 },
	{ 2, CG_MEMORY, "memory.max", BYTES, 0 },
	{ 2, CG_MEMORY, "memory.swap.max", ZERO, 1 },
	{ 2, CG_PIDS, "pids.max", COUNT, 0 },
	{ 2, CG_CPU, "cpu.max", CPU_MAX, 0 },
	{ 2, CG_MEMORY, "cgroup.max.descendants", ZERO, 0 },
};

static void knob_text(const struct knob *k, const struct box_limits *lim, char *out, size_t size)
{
	unsigned long quota = (unsigned long)lim->cpu_milli * (CPU_PERIOD_US / 1000);

	switch (k->format) {
	case BYTES:
		snprintf(out, size, "%llu", (unsigned long long)lim->mem_bytes);
		break;
	case COUNT:
		snprintf(out, size, "%u", lim->pids);
		break;
	case CPU_QUOTA:
		snprintf(out, size, "%lu", quota);
		break;
	case CPU_MAX:
		snprintf(out, size, "%lu %u", quota, CPU_PERIOD_US);
		break;
	case ZERO:
		snprintf(out, size, "0");
		break;
	}
}

static int cgroup_limit_turn(const struct cgroups *cs, const struct knob *k, const char *id,
			     const struct box_limits *lim, struct err *e)
{
	char path[96], value[48];

	knob_text(k, lim, value, sizeof(value));
	snprintf(path, sizeof(path), "%s/%s", id, k->file);
	if (cgroup_put(cs->dir[k->ctl], path, value, e) == 0)
		return 0;
	return k->optional && e->sys == ENOENT ? 0 : -1;
}

/* The limit with swap must never be the lower one of the two. In a cgroup that has had limits
 * before it may have to be raised: then that limit is written first. */
static int limit_memory_v1(const struct cgroups *cs, const char *id, const struct box_limits *lim,
			   struct err *e)
{
	static const struct knob plain = { 1, CG_MEMORY, "memory.limit_in_bytes", BYTES, 0 },
				 swap = { 1, CG_MEMORY, "memory.memsw.limit_in_bytes", BYTES, 1 };

	if (cs->dir[CG_MEMORY] < 0 || cs->version != 1)
		return 0;
	if (cgroup_limit_turn(cs, &plain, id, lim, e) < 0) {
		if (e->sys != EINVAL || cgroup_limit_turn(cs, &swap, id, lim, e) < 0)
			return -1;
		return cgroup_limit_turn(cs, &plain, id, lim, e);
	}
	return cgroup_limit_turn(cs, &swap, id, lim, e);
}

int cgroup_limit(const struct cgroups *cs, const char *id, const struct box_limits *lim,
		 struct err *e)
{
	if (limit_memory_v1(cs, id, lim, e) < 0)
		return err_in(e, "cgroup %s", id);
	for (unsigned i = 0; i < ARRAY_LEN(knobs); i++)
		if (knobs[i].version == cs->version && cs->dir[knobs[i].ctl] >= 0 &&
		    cgroup_limit_turn(cs, &knobs[i], id, lim, e) < 0)
			return err_in(e, "cgroup %s", id);
	return 0;
}

static int set_memory(const struct cgroups *cs, const char *id, const char *file, uint64_t bytes,
		      struct err *e)
{
	char path[96], value[24];

	snprintf(path, sizeof(path), "%s/%s", id, file);
	snprintf(value, sizeof(value), "%llu", (unsigned long long)bytes);
	return cgroup_put(cs->dir[CG_MEMORY], path, bytes == UINT64_MAX ? "max" : value, e);
}

/* The kernel rejects a limit below what is used and cannot be reclaimed (EBUSY). The limit with
 * swap must never be the lower one of the two, or absent. */
static int change_memory_v1(const struct cgroups *cs, const char *id, uint64_t was, uint64_t want,
			    struct err *e)
{
	static const char *const files[] = { "memory.limit_in_bytes",
					     "memory.memsw.limit_in_bytes" };
	int raise = want > was;

	for (int i = 0; i < 2; i++)
		if (set_memory(cs, id, files[raise ? !i : i], want, e) < 0 &&
		    (e->sys != ENOENT || (raise ? !i : i) == 0))
			return -1;
	return 0;
}

/* A lower memory.max would kill. memory.high only reclaims, and slows allocations down: with it
 * the code checks whether the new limit fits, before that is set. */
static int change_memory_v2(const struct cgroups *cs, const char *id, uint64_t was, uint64_t want,
			    struct err *e)
{
	struct err ignored;
	int set;

	if (want >= was)
		return set_memory(cs, id, "memory.max", want, e);
	if (set_memory(cs, id, "memory.high", want, e) < 0)
		return -1;
	if (cgroup_number(cs->dir[CG_MEMORY], id, "memory.current", NULL) > want) {
		errno = EBUSY;
		set = err_sys(e, "memory.max");
	} else {
		set = set_memory(cs, id, "memory.max", want, e);
	}
	if (set_memory(cs, id, "memory.high", UINT64_MAX, set < 0 ? &ignored : e) < 0)
		return -1;
	return set;
}

static int change_memory(const struct cgroups *cs, const char *id, uint64_t was, uint64_t want,
			 struct err *e)
{
	struct cgroup_counts n;

	if (was == want || cs->dir[CG_MEMORY] < 0)
		return 0;
	if ((cs->version == 1 ? change_memory_v1 : change_memory_v2)(cs, id, was, want, e) == 0)
		return 0;
	if (e->sys != EBUSY)
		return -1;
	cgroup_count(cs, id, &n);
	return err_set(e, ERR_CONFLICT,
		       "memory limit of %llu: the box uses %llu, which cannot be reclaimed now",
		       (unsigned long long)want, (unsigned long long)n.mem_now);
}

static int change_all(const struct cgroups *cs, const char *id, const struct box_limits *was,
		      const struct box_limits *want, struct err *e)
{
	if (change_memory(cs, id, was->mem_bytes, want->mem_bytes, e) < 0)
		return -1;
	for (unsigned i = 0; i < ARRAY_LEN(knobs); i++)
		if (knobs[i].version == cs->version && cs->dir[knobs[i].ctl] >= 0 &&
		    knobs[i].ctl != CG_MEMORY && cgroup_limit_turn(cs, &knobs[i], id, want, e) < 0)
			return -1;
	return 0;
}

int cgroup_change(const struct cgroups *cs, const char *id, const struct box_limits *was,
		  const struct box_limits *want, struct err *e)
{
	struct err ignored;

	if (change_all(cs, id, was, want, e) == 0)
		return 0;
	(void)!change_all(cs, id, want, was, &ignored); /* the first failure is the news */
	return e->kind == ERR_CONFLICT ? -1 : err_in(e, "cgroup %s", id);
}

/* ---- all boxes together ---- */

#define RESERVE_LEAST (256ull << 20)
#define RESERVE_MOST (4ull << 30)
#define PIDS_LEAST 1024ul

static unsigned long read_sysctl(const char *path, unsigned long otherwise)
{
	char text[32];
	unsigned long n =
		cgroup_get(AT_FDCWD, path, text, sizeof(text)) == 0 ? strtoul(text, NULL, 10) : 0;

	return n ? n : otherwise;
}

/* A tenth of the machine, within bounds, is reserved for processes outside boxes. */
static uint64_t parent_memory(void)
{
	uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
		 reserve = all / 10;

	reserve = reserve < RESERVE_LEAST  ? RESERVE_LEAST
		  : reserve > RESERVE_MOST ? RESERVE_MOST
					   : reserve;
	return all / 2 > all - reserve || reserve > all ? all / 2 : all - reserve;
}

static unsigned long parent_pids(void)
{
	unsigned long pids = read_sysctl("/proc/sys/kernel/pid_max", 32768),
		      threads = read_sysctl("/proc/sys/kernel/threads-max", pids),
		      n = (threads < pids ? threads : pids) / 4 * 3;

	return n < PIDS_LEAST ? PIDS_LEAST : n;
}

static int put_number(int dir, const char *file, uint64_t n, struct err *e)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	return cgroup_put(dir, file, text, e);
}

/* Boxes of an earlier keeper may be in it, and use more than the limit: then the kernel rejects
 * it on v1 (EBUSY), and the boxes keep running under their old limit. */
static int limit_parent_memory(const struct cgroups *cs, struct err *e)
{
	int dir = cs->dir[CG_MEMORY], done;
	struct err ignored;

	if (dir < 0)
		return 0;
	if (cs->version == 2)
		return put_number(dir, "memory.max", parent_memory(), e);
	/* Before Linux 5.11 a limit applied to the groups below only with this setting. */
	(void)!cgroup_put(dir, "memory.use_hierarchy", "1", &ignored);
	done = put_number(dir, "memory.limit_in_bytes", parent_memory(), e);
	return done < 0 && e->sys == EBUSY ? 0 : done;
}

/* A quarter of the default: programs in boxes use CPU time that no other process wants, and the daemon, when
 * it becomes ready, runs at once. With equal weights it would wait for their time slices. */
static int weigh_parent(const struct cgroups *cs, struct err *e)
{
	int dir = cs->dir[CG_CPU];

	if (dir < 0)
		return 0;
	return cs->version == 2 ? put_number(dir, "cpu.weight", 25, e)
				: put_number(dir, "cpu.shares", 256, e);
}

int cgroups_limit_parent(const struct cgroups *cs, struct err *e)
{
	if (limit_parent_memory(cs, e) < 0)
		return err_in(e, "cgroup of all boxes");
	if (cs->dir[CG_PIDS] >= 0 && put_number(cs->dir[CG_PIDS], "pids.max", parent_pids(), e) < 0)
		return err_in(e, "cgroup of all boxes");
	if (weigh_parent(cs, e) < 0)
		return err_in(e, "cgroup of all boxes");
	return 0;
}
