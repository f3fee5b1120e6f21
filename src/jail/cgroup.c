/* cgroup.c - see cgroup.h.
 *
 * v1: one hierarchy per controller; a box has a directory in each. v2: one directory.
 * On v1 a process enters by writing "0" to `tasks`: that takes microseconds, while a pid in
 * cgroup.procs waits for an RCU grace period (ten milliseconds after idle). */
#include "jail/cgroup_life.h"
#include "base/cleanup.h"
#include "jail/device.h"
#include "jail/launch.h"
#include "jail/feature.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
	const char *name;
	uint64_t layer;
} controllers[CG_NCTL] = {
	[CG_MEMORY] = { "memory", FEATURE_BIT(FEATURE_MEM) },
	[CG_PIDS] = { "pids", FEATURE_BIT(FEATURE_TASKS) },
	[CG_CPU] = { "cpu", FEATURE_BIT(FEATURE_CPU) },
	[CG_CPUACCT] = { "cpuacct", 0 },
	[CG_DEVICES] = { "devices", FEATURE_BIT(FEATURE_DEVICES) },
	[CG_FREEZER] = { "freezer", 0 },
};

/* ---- small file work ---- */

int cgroup_put(int dir, const char *path, const char *value, struct err *e)
{
	auto_fd int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		return err_sys(e, "write '%.40s' to %s", value, path);
	return 0;
}

int cgroup_get(int dir, const char *path, char *out, size_t size)
{
	auto_fd int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	out[n > 0 ? n : 0] = 0;
	return n < 0 ? -1 : 0;
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

static void cgroups_vm_name(const struct cgroups *cs, char out[sizeof(cs->name) + 8])
{
	snprintf(out, sizeof(cs->name) + 8, "%s-vm", cs->name);
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
	if (root < 0 || cgroup_get(root, "cgroup.controllers", have, sizeof(have)) < 0)
		return 0;
	if (!has_word(have, "memory") || !has_word(have, "pids"))
		return 0; /* a hybrid host: the controllers live in v1 */
	parent = make_parent(root, name, e);
	if (parent < 0)
		return -1;
	cs->root[CG_MEMORY] = root;
	for (unsigned i = 0; i < ARRAY_LEN(wanted); i++) {
		snprintf(enable, sizeof(enable), "+%s", controllers[wanted[i]].name);
		if (cgroup_put(root, "cgroup.subtree_control", enable, e) < 0 ||
		    cgroup_put(parent, "cgroup.subtree_control", enable, e) < 0) {
			close(parent);
			return -1;
		}
		cs->dir[wanted[i]] = parent;
		cs->layers |= controllers[wanted[i]].layer;
	}
	cs->version = 2;
	(void)steal_fd(&root);
	if (device_attach(parent, JAIL_CONTAINER, e) == 0)
		cs->layers |= FEATURE_BIT(FEATURE_DEVICES);
	else
		snprintf(cs->why_not, sizeof(cs->why_not), "devices: %.140s", e->msg);
	return 0;
}

static int allow_devices(int dir, unsigned tier, struct err *e)
{
	if (cgroup_put(dir, "devices.deny", "a", e) < 0)
		return -1;
	for (unsigned i = 0; i < device_nrows; i++) {
		char rule[32];

		if (!(device_rows[i].tiers & tier))
			continue;
		if (device_rows[i].minor < 0)
			snprintf(rule, sizeof(rule), "c %d:* rw", device_rows[i].major);
		else
			snprintf(rule, sizeof(rule), "c %d:%d rw", device_rows[i].major,
				 device_rows[i].minor);
		if (cgroup_put(dir, "devices.allow", rule, e) < 0)
			return -1;
	}
	return 0;
}

/* Distributions mount cpu and cpuacct as one hierarchy: its directory must be made, entered and removed once. */
static int join_earlier_v1(struct cgroups *cs, unsigned i)
{
	struct stat own, other;

	if (fstat(cs->dir[i], &own) < 0)
		return 0;
	for (unsigned k = 0; k < i; k++)
		if (cs->dir[k] >= 0 && !cgroups_is_alias(cs, k) && fstat(cs->dir[k], &other) == 0 &&
		    own.st_dev == other.st_dev && own.st_ino == other.st_ino) {
			close(cs->dir[i]);
			cs->dir[i] = cs->dir[k];
			cs->joined |= 1u << i;
			return 1;
		}
	return 0;
}

/* The rules of a folder below "atoll" could only be fewer: virtual machines, which may open more, have a folder beside it. */
static int init_vm_devices(struct cgroups *cs, int root, struct err *e)
{
	char name[sizeof(cs->name) + 8];

	cgroups_vm_name(cs, name);
	cs->vm_devices = make_parent(root, name, e);
	return cs->vm_devices < 0 ? -1 : allow_devices(cs->vm_devices, JAIL_MICROVM, e);
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
		if (i == CG_DEVICES && (allow_devices(cs->dir[i], JAIL_CONTAINER, e) < 0 ||
					init_vm_devices(cs, root, e) < 0))
			return -1;
		if (!join_earlier_v1(cs, i))
			cs->root[i] = steal_fd(&root);
		cs->layers |= controllers[i].layer;
		cs->version = 1;
	}
	return 0;
}

int cgroups_init(struct cgroups *cs, const char *name, struct err *e)
{
	*cs = (struct cgroups){ .version = 0, .vm_devices = -1 };
	snprintf(cs->name, sizeof(cs->name), "%s", name);
	for (unsigned i = 0; i < CG_NCTL; i++)
		cs->dir[i] = cs->root[i] = -1;
	if (init_v2(cs, name, e) < 0 || (!cs->version && init_v1(cs, name, e) < 0) ||
	    (cs->version && cgroups_limit_parent(cs, e) < 0)) {
		/* A host that does not permit cgroups is no error: boxes then have no such
		 * limits, their records show it, and a request with such a limit is rejected. */
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

/* v2 has one directory for all, v1 one for controllers that are mounted together: it must be
 * used once. */
int cgroups_is_alias(const struct cgroups *cs, unsigned i)
{
	return (cs->version == 2 && i != CG_MEMORY) || cs->joined >> i & 1;
}

int cgroups_can_count_cpu(const struct cgroups *cs)
{
	return cs->version && cs->dir[cs->version == 2 ? CG_CPU : CG_CPUACCT] >= 0;
}

void cgroups_fini(struct cgroups *cs)
{
	char vm_name[sizeof(cs->name) + 8];

	if (cs->vm_devices >= 0) {
		cgroups_vm_name(cs, vm_name);
		close(cs->vm_devices);
		unlinkat(cs->root[CG_DEVICES], vm_name, AT_REMOVEDIR);
		cs->vm_devices = -1;
	}
	for (unsigned i = 0; i < CG_NCTL; i++) {
		if (!cgroups_is_alias(cs, i) && cs->dir[i] >= 0) {
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
		if (cs->dir[i] >= 0 && i != CG_FREEZER && !cgroups_is_alias(cs, i) &&
		    cgroup_put(cs->dir[i], "tasks", "0", e) < 0)
			return err_in(e, "enter %s", controllers[i].name);
	return 0;
}

/* ---- one box ---- */

/* devices has two rule sets, for virtual machines and for all other boxes, outside of the boxes. A freezer is created when a box is
 * paused. */
static int box_has(const struct cgroups *cs, unsigned i)
{
	return cs->dir[i] >= 0 && i != CG_DEVICES && i != CG_FREEZER && !cgroups_is_alias(cs, i);
}

int cgroup_make(const struct cgroups *cs, const char *id, const struct box_limits *lim,
		struct err *e)
{
	struct err ignored;

	for (unsigned i = 0; i < CG_NCTL; i++)
		if (box_has(cs, i) && mkdirat(cs->dir[i], id, 0755) < 0) {
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

		if (!box_has(cs, i))
			continue;
		fd = openat(cs->dir[i], path, O_WRONLY | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT && i == CG_CPUACCT)
			continue; /* a box of an older keeper */
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

int cgroup_permit_vm(const struct cgroups *cs, struct spec *sp, struct err *e)
{
	if (!(cs->layers & FEATURE_BIT(FEATURE_DEVICES)))
		return 0;
	if (cs->version == 2)
		return device_attach(sp->cgroup, JAIL_MICROVM, e);
	sp->tasks[sp->ntasks] = openat(cs->vm_devices, "tasks", O_WRONLY | O_CLOEXEC);
	if (sp->tasks[sp->ntasks] < 0)
		return err_sys(e, "open tasks of the devices of virtual machines");
	sp->ntasks++;
	return 0;
}

int cgroup_dir(const struct cgroups *cs, const char *id, struct err *e)
{
	int fd = openat(cs->dir[CG_MEMORY], id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? err_sys(e, "open cgroup %s", id) : fd;
}

void cgroups_each(const struct cgroups *cs, void (*each)(const char *id, void *arg), void *arg)
{
	for (unsigned i = 0; i < CG_NCTL; i++) {
		int fd = cs->dir[i] < 0 || cgroups_is_alias(cs, i)
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
		if (cs->dir[i] >= 0 && i != CG_DEVICES && !cgroups_is_alias(cs, i) &&
		    unlinkat(cs->dir[i], id, AT_REMOVEDIR) < 0 && errno != ENOENT)
			return err_sys(e, "remove cgroup %s of %s", id, controllers[i].name);
	return 0;
}
