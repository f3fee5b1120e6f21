/* cgroup.c - see cgroup.h.
 *
 * v1: one hierarchy per controller; a box has a directory in each. v2: one directory.
 * On v1 a process enters by writing "0" to `tasks`: that takes microseconds, while a pid in
 * cgroup.procs waits for an RCU grace period (ten milliseconds after idle). */
#include "jail/cgroup.h"
#include "base/own.h"
#include "jail/device.h"
#include "jail/layer.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CPU_PERIOD_US 100000

static const struct {
	const char *name;
	uint64_t layer;
} controllers[CG_NCTL] = {
	[CG_MEMORY] = { "memory", LAYER_BIT(LAYER_MEM) },
	[CG_PIDS] = { "pids", LAYER_BIT(LAYER_TASKS) },
	[CG_CPU] = { "cpu", LAYER_BIT(LAYER_CPU) },
	[CG_CPUACCT] = { "cpuacct", 0 },
	[CG_DEVICES] = { "devices", LAYER_BIT(LAYER_DEVICES) },
	[CG_FREEZER] = { "freezer", 0 },
};

/* ---- small file work ---- */

static int put(int dir, const char *path, const char *value, struct err *e)
{
	auto_fd int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		return err_sys(e, "write '%.40s' to %s", value, path);
	return 0;
}

static int get(int dir, const char *path, char *out, size_t size)
{
	auto_fd int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	out[n > 0 ? n : 0] = 0;
	return n < 0 ? -1 : 0;
}

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

static uint64_t number(int dir, const char *id, const char *file, const char *key)
{
	char path[96], text[2048];

	snprintf(path, sizeof(path), "%s/%s", id, file);
	if (dir < 0 || get(dir, path, text, sizeof(text)) < 0)
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

/* ---- finding the hierarchies ---- */

static int make_parent(int root, const char *name, struct err *e)
{
	int fd;

	if (mkdirat(root, name, 0755) < 0 && errno != EEXIST)
		return err_sys(e, "make cgroup %s", name);
	fd = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "open cgroup %s", name) : fd;
}

/* Is this word in a list separated by commas, spaces or newlines? */
static int has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; (p = strstr(p, word)) != NULL; p += n)
		if ((p == list || strchr(", \n", p[-1])) && (!p[n] || strchr(", \n", p[n])))
			return 1;
	return 0;
}

/* The mount point of a hierarchy: v1 by controller among the mount options, v2 by type. */
static int find_mount(const char *type, const char *controller, char *out, size_t size)
{
	FILE *f = fopen("/proc/self/mounts", "re");
	char where[256], what[64], opts[512];
	int found = 0;

	while (f && !found && fscanf(f, "%*s %255s %63s %511s %*d %*d", where, what, opts) == 3)
		if (strcmp(what, type) == 0 && (!controller || has_word(opts, controller))) {
			snprintf(out, size, "%s", where);
			found = 1;
		}
	if (f)
		fclose(f);
	return found;
}

static int init_v2(struct cgroups *cs, const char *name, struct err *e)
{
	static const enum cgroup_ctl wanted[] = { CG_MEMORY, CG_PIDS, CG_CPU };
	char where[256], have[256], enable[32];
	auto_fd int root = -1;
	int parent;

	if (!find_mount("cgroup2", NULL, where, sizeof(where)))
		return 0;
	root = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || get(root, "cgroup.controllers", have, sizeof(have)) < 0)
		return 0;
	if (!has_word(have, "memory") || !has_word(have, "pids"))
		return 0; /* a hybrid host: the controllers live in v1 */
	parent = make_parent(root, name, e);
	if (parent < 0)
		return -1;
	cs->root[CG_MEMORY] = root;
	for (unsigned i = 0; i < ARRAY_LEN(wanted); i++) {
		snprintf(enable, sizeof(enable), "+%s", controllers[wanted[i]].name);
		if (put(root, "cgroup.subtree_control", enable, e) < 0 ||
		    put(parent, "cgroup.subtree_control", enable, e) < 0) {
			close(parent);
			return -1;
		}
		cs->dir[wanted[i]] = parent;
		cs->layers |= controllers[wanted[i]].layer;
	}
	cs->version = 2;
	(void)steal_fd(&root);
	if (device_attach(parent, e) == 0)
		cs->layers |= LAYER_BIT(LAYER_DEVICES);
	else
		snprintf(cs->why_not, sizeof(cs->why_not), "devices: %.140s", e->msg);
	return 0;
}

static int allow_devices(int dir, struct err *e)
{
	if (put(dir, "devices.deny", "a", e) < 0)
		return -1;
	for (unsigned i = 0; i < device_nrows; i++) {
		char rule[32];

		if (device_rows[i].minor < 0)
			snprintf(rule, sizeof(rule), "c %d:* rw", device_rows[i].major);
		else
			snprintf(rule, sizeof(rule), "c %d:%d rw", device_rows[i].major,
				 device_rows[i].minor);
		if (put(dir, "devices.allow", rule, e) < 0)
			return -1;
	}
	return 0;
}

static int init_v1(struct cgroups *cs, const char *name, struct err *e)
{
	char where[256];

	for (unsigned i = 0; i < CG_NCTL; i++) {
		auto_fd int root = -1;

		if (!find_mount("cgroup", controllers[i].name, where, sizeof(where)))
			continue;
		root = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		cs->dir[i] = root < 0 ? -1 : make_parent(root, name, e);
		if (cs->dir[i] < 0)
			return root < 0 ? err_sys(e, "open %s", where) : -1;
		if (i == CG_DEVICES && allow_devices(cs->dir[i], e) < 0)
			return -1;
		cs->root[i] = steal_fd(&root);
		cs->layers |= controllers[i].layer;
		cs->version = 1;
	}
	return 0;
}

int cgroups_init(struct cgroups *cs, const char *name, struct err *e)
{
	*cs = (struct cgroups){ .version = 0 };
	snprintf(cs->name, sizeof(cs->name), "%s", name);
	for (unsigned i = 0; i < CG_NCTL; i++)
		cs->dir[i] = cs->root[i] = -1;
	if (init_v2(cs, name, e) < 0 || (!cs->version && init_v1(cs, name, e) < 0)) {
		/* Not ours to use is not an error of ours: boxes then have no such limits, say so, and
		 * refuse any that is asked for. */
		if (e->sys != EACCES && e->sys != EPERM && e->sys != EROFS)
			return err_in(e, "cgroups");
		cgroups_fini(cs);
		cs->version = 0;
		cs->layers = 0;
		snprintf(cs->why_not, sizeof(cs->why_not), "%.150s", e->msg);
	}
	for (unsigned i = 0; i < CG_NCTL; i++)
		if (controllers[i].layer && !(cs->layers & controllers[i].layer) && !cs->why_not[0])
			snprintf(cs->why_not, sizeof(cs->why_not), "no cgroup controller '%s'",
				 controllers[i].name);
	return 0;
}

/* v2 has one directory for all: act on it once. */
static int is_alias(const struct cgroups *cs, unsigned i)
{
	return cs->version == 2 && i != CG_MEMORY;
}

void cgroups_fini(struct cgroups *cs)
{
	for (unsigned i = 0; i < CG_NCTL; i++) {
		if (!is_alias(cs, i) && cs->dir[i] >= 0) {
			close(cs->dir[i]);
			unlinkat(cs->root[i], cs->name, AT_REMOVEDIR);
			close(cs->root[i]);
		}
		cs->dir[i] = cs->root[i] = -1;
	}
}

int cgroups_enter(const struct cgroups *cs, struct err *e)
{
	for (unsigned i = 0; cs->version == 1 && i < CG_NCTL; i++)
		if (cs->dir[i] >= 0 && i != CG_FREEZER && put(cs->dir[i], "tasks", "0", e) < 0)
			return err_in(e, "enter %s", controllers[i].name);
	return 0;
}

/* ---- one box ---- */

/* cpuacct costs a directory of its own on some hosts: only if somebody wants the figure.
 * devices has one rule set for all boxes, at the parent. freezer is for those that are frozen one day,
 * and made then. */
static int box_has(const struct cgroups *cs, unsigned i, const struct box_limits *lim)
{
	if (cs->dir[i] < 0 || i == CG_DEVICES || i == CG_FREEZER || is_alias(cs, i))
		return 0;
	return i != CG_CPUACCT || lim->cpu_ms;
}

enum format { BYTES, COUNT, CPU_QUOTA, CPU_MAX, ZERO };

/* No memory.high: a program that will not fit would be slowed for seconds before it is told. */
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

static int turn(const struct cgroups *cs, const struct knob *k, const char *id,
		const struct box_limits *lim, struct err *e)
{
	char path[96], value[48];

	knob_text(k, lim, value, sizeof(value));
	snprintf(path, sizeof(path), "%s/%s", id, k->file);
	if (put(cs->dir[k->ctl], path, value, e) == 0)
		return 0;
	return k->optional && e->sys == ENOENT ? 0 : -1;
}

/* The limit with swap must never be the lower one of the two. A cgroup that has had limits before
 * may have to be raised: then that one goes first. */
static int limit_memory_v1(const struct cgroups *cs, const char *id, const struct box_limits *lim,
			   struct err *e)
{
	static const struct knob plain = { 1, CG_MEMORY, "memory.limit_in_bytes", BYTES, 0 },
				 swap = { 1, CG_MEMORY, "memory.memsw.limit_in_bytes", BYTES, 1 };

	if (cs->dir[CG_MEMORY] < 0 || cs->version != 1)
		return 0;
	if (turn(cs, &plain, id, lim, e) < 0) {
		if (e->sys != EINVAL || turn(cs, &swap, id, lim, e) < 0)
			return -1;
		return turn(cs, &plain, id, lim, e);
	}
	return turn(cs, &swap, id, lim, e);
}

int cgroup_limit(const struct cgroups *cs, const char *id, const struct box_limits *lim, struct err *e)
{
	if (limit_memory_v1(cs, id, lim, e) < 0)
		return err_in(e, "cgroup %s", id);
	for (unsigned i = 0; i < ARRAY_LEN(knobs); i++)
		if (knobs[i].version == cs->version && cs->dir[knobs[i].ctl] >= 0 &&
		    turn(cs, &knobs[i], id, lim, e) < 0)
			return err_in(e, "cgroup %s", id);
	return 0;
}

static int set_memory(const struct cgroups *cs, const char *id, const char *file, uint64_t bytes,
		      struct err *e)
{
	char path[96], value[24];

	snprintf(path, sizeof(path), "%s/%s", id, file);
	snprintf(value, sizeof(value), "%llu", (unsigned long long)bytes);
	return put(cs->dir[CG_MEMORY], path, bytes == UINT64_MAX ? "max" : value, e);
}

/* The kernel refuses a limit below what is used and cannot be reclaimed (EBUSY). The limit with
 * swap must never be the lower one of the two, or absent. */
static int change_memory_v1(const struct cgroups *cs, const char *id, uint64_t was, uint64_t want,
			    struct err *e)
{
	static const char *const files[] = { "memory.limit_in_bytes", "memory.memsw.limit_in_bytes" };
	int raise = want > was;

	for (int i = 0; i < 2; i++)
		if (set_memory(cs, id, files[raise ? !i : i], want, e) < 0 &&
		    (e->sys != ENOENT || (raise ? !i : i) == 0))
			return -1;
	return 0;
}

/* A lower memory.max would kill. memory.high only reclaims, and slows down who wants more: under it
 * we look whether the new limit fits, before it is set. */
static int change_memory_v2(const struct cgroups *cs, const char *id, uint64_t was, uint64_t want,
			    struct err *e)
{
	struct err ignored;
	int set;

	if (want >= was)
		return set_memory(cs, id, "memory.max", want, e);
	if (set_memory(cs, id, "memory.high", want, e) < 0)
		return -1;
	if (number(cs->dir[CG_MEMORY], id, "memory.current", NULL) > want) {
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
	return err_set(e, ERR_CONFLICT, "memory limit of %llu: the box uses %llu and cannot do with less now",
		       (unsigned long long)want, (unsigned long long)n.mem_now);
}

static int change_all(const struct cgroups *cs, const char *id, const struct box_limits *was,
		      const struct box_limits *want, struct err *e)
{
	if (change_memory(cs, id, was->mem_bytes, want->mem_bytes, e) < 0)
		return -1;
	for (unsigned i = 0; i < ARRAY_LEN(knobs); i++)
		if (knobs[i].version == cs->version && cs->dir[knobs[i].ctl] >= 0 &&
		    knobs[i].ctl != CG_MEMORY && turn(cs, &knobs[i], id, want, e) < 0)
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

int cgroup_make(const struct cgroups *cs, const char *id, const struct box_limits *lim, struct err *e)
{
	struct err ignored;

	for (unsigned i = 0; i < CG_NCTL; i++)
		if (box_has(cs, i, lim) && mkdirat(cs->dir[i], id, 0755) < 0) {
			err_sys(e, "make cgroup %s in %s", id, controllers[i].name);
			(void)!cgroup_remove(cs, id, &ignored); /* the first failure is the news */
			return -1;
		}
	if (cgroup_limit(cs, id, lim, e) < 0) {
		(void)!cgroup_remove(cs, id, &ignored);
		return -1;
	}
	return 0;
}

int cgroup_tasks(const struct cgroups *cs, const char *id, int out_fds[CG_NCTL], struct err *e)
{
	char path[64];
	int n = 0;

	snprintf(path, sizeof(path), "%s/tasks", id);
	for (unsigned i = 0; cs->version == 1 && i < CG_NCTL; i++) {
		int fd;

		if (cs->dir[i] < 0 || i == CG_DEVICES || i == CG_FREEZER)
			continue;
		fd = openat(cs->dir[i], path, O_WRONLY | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT && i == CG_CPUACCT)
			continue;
		if (fd < 0) {
			err_sys(e, "open %s of %s", path, controllers[i].name);
			while (n > 0)
				close(out_fds[--n]);
			return -1;
		}
		out_fds[n++] = fd;
	}
	return n;
}

int cgroup_dir(const struct cgroups *cs, const char *id, struct err *e)
{
	int fd = openat(cs->dir[CG_MEMORY], id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? err_sys(e, "open cgroup %s", id) : fd;
}

/* ---- figures ---- */

enum { MEMORY_NOW = 3, MEMORY_PEAK };

/* Whether somebody is in it comes first: if nobody is, the others stay as they are, but for the memory. */
static const struct figure {
	int version; /* 0: both */
	enum cgroup_ctl ctl;
	const char *file, *key;
	size_t to;
	unsigned per; /* the kernel's, for one of ours */
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
	{ 1, CG_CPUACCT, "cpuacct.usage", NULL, TO(cpu_us), 1000 },
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
	return (!figures[i].version || figures[i].version == cs->version) && cs->dir[figures[i].ctl] >= 0;
}

static void note(unsigned i, uint64_t value, struct cgroup_counts *out)
{
	/* Upwards: what is not nothing must not look like it. */
	if (value != UINT64_MAX)
		value = value / figures[i].per + (value % figures[i].per != 0);
	*(uint64_t *)(void *)((char *)out + figures[i].to) = value;
}

void cgroup_count(const struct cgroups *cs, const char *id, struct cgroup_counts *out)
{
	memset(out, 0xff, sizeof(*out));
	for (unsigned i = 0; i < ARRAY_LEN(figures); i++)
		if (has_figure(cs, i))
			note(i, number(cs->dir[figures[i].ctl], id, figures[i].file, figures[i].key), out);
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
		out->figures[i] = openat(cs->dir[figures[i].ctl], path,
					 (i == MEMORY_PEAK ? O_RDWR : O_RDONLY) | O_CLOEXEC);
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
			note(i, number_again(f->figures[i], figures[i].key), out);
}

uint64_t cgroup_memory_now(const struct cgroup_files *f)
{
	return number_again(f->figures[MEMORY_NOW], NULL);
}

int cgroup_forget_peak(const struct cgroup_files *f, struct err *e)
{
	if (pwrite(f->figures[MEMORY_PEAK], "0", 1, 0) != 1)
		return err_sys(e, "write '0' to %s", figures[MEMORY_PEAK].file);
	return 0;
}

int cgroup_is_empty(const struct cgroups *cs, const char *id)
{
	return number(cs->dir[CG_PIDS], id, "pids.current", NULL) == 0;
}

/* Charges that nobody has any more are given back late: some pages per processor, mounts, and what is
 * freed by and by. More is file cache, which would be counted as the next one's. */
#define LEFT_BYTES (4u << 20)

int cgroup_as_new(const struct cgroups *cs, const struct cgroup_counts *n)
{
	/* Without these two nobody can tell. */
	if (cs->version != 1 || cs->dir[CG_PIDS] < 0 || cs->dir[CG_MEMORY] < 0)
		return 0;
	return n->pids_now == 0 && n->pids_hits == 0 && n->pids_peak != UINT64_MAX && n->oom_kills == 0 &&
	       n->mem_hits == 0 && n->mem_now <= LEFT_BYTES &&
	       (cs->dir[CG_CPU] < 0 || n->throttled_us == 0);
}

/* Every process it lists, once; several reads see a changing list. Returns how many were seen. */
static int each_listed(int dir, const char *id, int (*each)(int pid, void *arg), void *arg)
{
	char path[64], text[4096 + 1], *at, *end;
	int seen = 0;
	size_t kept = 0;
	auto_fd int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/cgroup.procs", id);
	fd = dir < 0 ? -1 : openat(dir, path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && (n = read(fd, text + kept, sizeof(text) - 1 - kept)) > 0) {
		text[kept + (size_t)n] = 0;
		for (at = text; (end = strchr(at, '\n')) != NULL; at = end + 1) {
			int pid = atoi(at);

			if (pid > 1)
				seen += each(pid, arg);
		}
		kept = strnlen(at, 16); /* the beginning of a number */
		memmove(text, at, kept);
	}
	return seen;
}

static int end_one(int pid, void *arg)
{
	(void)arg;
	kill(pid, SIGKILL);
	return 1;
}

int cgroup_kill(const struct cgroups *cs, const char *id)
{
	struct err ignored;
	int seen = 0;

	for (unsigned i = 0; i < CG_NCTL; i++)
		if (!is_alias(cs, i))
			seen += each_listed(cs->dir[i], id, end_one, NULL);
	if (seen) /* the dead must wake up to die */
		(void)!cgroup_thaw(cs, id, &ignored);
	return seen;
}

/* ---- frozen ---- */

enum { FREEZE_TRIES = 400, FREEZE_PAUSE_US = 5000, GATHER_ROUNDS = 8 }; /* two seconds */

int cgroups_can_freeze(const struct cgroups *cs)
{
	return cs->version == 2 || (cs->version == 1 && cs->dir[CG_FREEZER] >= 0);
}

static int cannot_freeze(const struct cgroups *cs, struct err *e)
{
	return err_set(e, ERR_DENIED, "boxes cannot be frozen on this host: %.120s",
		       cs->version ? "no cgroup controller 'freezer'" : cs->why_not);
}

/* Harmless for one that is in it already; one that has ended meanwhile is no failure. */
static int move_one(int pid, void *arg)
{
	const int *procs = arg;
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", pid);

	return write(*procs, text, (size_t)n) == n;
}

static int count_one(int pid, void *arg)
{
	(void)pid;
	(void)arg;
	return 1;
}

/* A hierarchy in which every process of a box is listed. */
static int lister(const struct cgroups *cs)
{
	return cs->dir[CG_PIDS] >= 0 ? cs->dir[CG_PIDS] :
	       cs->dir[CG_MEMORY] >= 0 ? cs->dir[CG_MEMORY] : cs->dir[CG_CPU];
}

/* v1: who is written into a frozen group freezes on the spot; children of the others are born outside.
 * So we go on until those inside are all there are: none of them can fork any more. Several rounds at once,
 * to be faster than who forks; then a rest, for who is ending cannot be moved and needs the processor for it. */
static int gather(const struct cgroups *cs, const char *id, struct err *e)
{
	char path[64];
	auto_fd int procs = -1;

	snprintf(path, sizeof(path), "%s/cgroup.procs", id);
	procs = openat(cs->dir[CG_FREEZER], path, O_WRONLY | O_CLOEXEC);
	if (procs < 0)
		return err_sys(e, "open %s of freezer", path);
	for (unsigned i = 1; i <= FREEZE_TRIES * GATHER_ROUNDS; i++) {
		int all = each_listed(lister(cs), id, count_one, NULL);

		if (each_listed(cs->dir[CG_FREEZER], id, count_one, NULL) >= all)
			return 0;
		each_listed(lister(cs), id, move_one, &procs);
		if (i % GATHER_ROUNDS == 0)
			usleep(FREEZE_PAUSE_US);
	}
	return err_set(e, ERR_LIMIT, "its programs start others faster than they can be frozen");
}

static int freeze_v1(const struct cgroups *cs, const char *id, struct err *e)
{
	char path[64], state[32];

	if (mkdirat(cs->dir[CG_FREEZER], id, 0755) < 0 && errno != EEXIST)
		return err_sys(e, "make cgroup %s in freezer", id);
	snprintf(path, sizeof(path), "%s/freezer.state", id);
	if (put(cs->dir[CG_FREEZER], path, "FROZEN", e) < 0 || gather(cs, id, e) < 0)
		return -1;
	for (unsigned i = 0; i < FREEZE_TRIES; i++) {
		/* To read it is what makes the kernel look. To write it again is for those who were told while
		 * they were in vfork(), and slept there then: nobody tells them a second time. */
		if (get(cs->dir[CG_FREEZER], path, state, sizeof(state)) == 0 &&
		    strncmp(state, "FROZEN", 6) == 0)
			return 0;
		usleep(FREEZE_PAUSE_US);
		if (put(cs->dir[CG_FREEZER], path, "FROZEN", e) < 0)
			return -1;
	}
	return err_set(e, ERR_SYS, "some program does not stop");
}

static int freeze_v2(const struct cgroups *cs, const char *id, struct err *e)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/cgroup.freeze", id);
	if (put(cs->dir[CG_MEMORY], path, "1", e) < 0)
		return -1;
	for (unsigned i = 0; i < FREEZE_TRIES; i++) {
		if (number(cs->dir[CG_MEMORY], id, "cgroup.events", "frozen") == 1)
			return 0;
		usleep(FREEZE_PAUSE_US);
	}
	return err_set(e, ERR_SYS, "some program does not stop");
}

int cgroup_freeze(const struct cgroups *cs, const char *id, struct err *e)
{
	struct err ignored;

	if (!cgroups_can_freeze(cs))
		return cannot_freeze(cs, e);
	if ((cs->version == 1 ? freeze_v1 : freeze_v2)(cs, id, e) == 0)
		return 0;
	(void)!cgroup_thaw(cs, id, &ignored); /* the first failure is the news */
	return err_in(e, "freeze %s", id);
}

int cgroup_thaw(const struct cgroups *cs, const char *id, struct err *e)
{
	int v1 = cs->version == 1;
	char path[64];

	if (!cgroups_can_freeze(cs))
		return cannot_freeze(cs, e);
	snprintf(path, sizeof(path), v1 ? "%s/freezer.state" : "%s/cgroup.freeze", id);
	if (put(cs->dir[v1 ? CG_FREEZER : CG_MEMORY], path, v1 ? "THAWED" : "0", e) == 0)
		return 0;
	return v1 && e->sys == ENOENT ? 0 : err_in(e, "thaw %s", id); /* it never was frozen */
}

void cgroups_each(const struct cgroups *cs, void (*each)(const char *id, void *arg), void *arg)
{
	for (unsigned i = 0; i < CG_NCTL; i++) {
		int fd = cs->dir[i] < 0 || is_alias(cs, i)
				 ? -1
				 : openat(cs->dir[i], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		DIR *d = fd < 0 ? NULL : fdopendir(fd);
		struct dirent *de;

		while (d && (de = readdir(d)) != NULL)
			if (de->d_type == DT_DIR && de->d_name[0] != '.')
				each(de->d_name, arg);
		if (d)
			closedir(d);
	}
}

int cgroup_remove(const struct cgroups *cs, const char *id, struct err *e)
{
	for (unsigned i = 0; i < CG_NCTL; i++)
		if (cs->dir[i] >= 0 && i != CG_DEVICES && !is_alias(cs, i) &&
		    unlinkat(cs->dir[i], id, AT_REMOVEDIR) < 0 && errno != ENOENT)
			return err_sys(e, "remove cgroup %s of %s", id, controllers[i].name);
	return 0;
}
