/* cgroup.h - the resource limits of boxes, one interface for cgroup v1 and v2.
 * Owns:         the "atoll" cgroup of this host and the box cgroups below it, mkdir to rmdir.
 * Does not own: the processes in them; the keeper kills and reaps those first. */
#pragma once
#include "base/err.h"
#include <stdint.h>
struct spec;

enum cgroup_ctl { CG_MEMORY, CG_PIDS, CG_CPU, CG_CPUACCT, CG_DEVICES, CG_FREEZER, CG_NCTL };

struct cgroups {          /* of the host; opened once, before the keeper leaves the host's mounts */
	int version;      /* 0: none usable */
	int dir[CG_NCTL]; /* v1: "atoll" in each hierarchy. v2: the same directory. -1: not
			   * available */
	unsigned
		joined; /* v1: bits of controllers that are mounted with an earlier one ("cpu,cpuacct") */
	uint64_t layers;   /* which limits can be enforced, bits of enum jail_feature */
	char name[32];     /* of the parent */
	int root[CG_NCTL]; /* what the parent is in */
	int vm_devices;    /* v1: "atoll-vm" in the hierarchy of devices, or -1 */
	char why_not[160]; /* the missing controllers, for messages */
};

struct box_limits {
	uint64_t mem_bytes;
	uint32_t cpu_milli, pids;
};

struct cgroup_counts { /* ~0: this kernel does not report it */
	uint64_t mem_now, mem_peak, cpu_us, oom_kills, mem_hits, pids_now, pids_peak, pids_hits,
		throttled_us;
};

enum { CG_FIGURES = 16 };

struct cgroup_files {               /* v1: of a cached cgroup, open */
	int tasks[CG_NCTL], ntasks; /* as of cgroup_tasks() */
	int figures[CG_FIGURES];    /* -1: this kernel does not report it */
};

/* name: the parent's name below each hierarchy's root. */
must_check int cgroups_init(struct cgroups *cs, const char *name, struct err *e);
/* Removes the parent too, if it is empty. */
void cgroups_fini(struct cgroups *cs);
/* Moves the calling thread, and its later clones, into the parent (v1: new boxes start there). */
must_check int cgroups_enter(const struct cgroups *cs, struct err *e);

/* mkdir and every limit, before a process is in it. On failure nothing is left. */
must_check int cgroup_make(const struct cgroups *cs, const char *id, const struct box_limits *lim,
			   struct err *e);
must_check int cgroup_limit(const struct cgroups *cs, const char *id, const struct box_limits *lim,
			    struct err *e);
/* Changes the limits of a running box. A memory limit below the current use is rejected unless
 * the kernel can reclaim the difference; no process is killed for it. On failure all is as it
 * was. */
must_check int cgroup_change(const struct cgroups *cs, const char *id, const struct box_limits *was,
			     const struct box_limits *want, struct err *e);
/* v1: `tasks` files, one per controller, for a process to write "0" into. Returns how many. */
must_check int cgroup_tasks(const struct cgroups *cs, const char *id, int out_fds[CG_NCTL],
			    struct err *e);
/* v2: the directory, for CLONE_INTO_CGROUP. */
must_check int cgroup_dir(const struct cgroups *cs, const char *id, struct err *e);
/* For a box with a virtual machine, before it is launched: permits the devices of that tier, too. */
must_check int cgroup_permit_vm(const struct cgroups *cs, struct spec *sp, struct err *e);
void cgroup_count(const struct cgroups *cs, const char *id, struct cgroup_counts *out);
/* The same for a cgroup whose files are open. The caller owns the descriptors, and may renumber
 * them. */
must_check int cgroup_open(const struct cgroups *cs, const char *id, struct cgroup_files *out,
			   struct err *e);
void cgroup_close(struct cgroup_files *f);
void cgroup_count_open(const struct cgroup_files *f, struct cgroup_counts *out);
uint64_t cgroup_memory_now(const struct cgroup_files *f);
/* For the next box: the peak of memory is set to the current use, and CPU time is counted from
 * 0. */
must_check int cgroup_reset(const struct cgroup_files *f, struct err *e);
/* CPU time is counted from now on. Returns what has to be subtracted from cpu_us: 0 on v1, where
 * the counter is set to 0; on v2 the counter cannot be set, and its value is returned. f: NULL,
 * or its open files. */
uint64_t cgroup_restart_cpu(const struct cgroups *cs, const char *id, const struct cgroup_files *f);
int cgroups_can_count_cpu(const struct cgroups *cs); /* of all processes of a box together */
/* Freezes or thaws all processes; a second call changes nothing. Waits for the kernel, within
 * bounds; a box that cannot be frozen is thawed again. */
must_check int cgroup_freeze(const struct cgroups *cs, const char *id, struct err *e);
/* v1: the processes enter the hierarchy that can freeze them, which takes milliseconds at the first
 * time. Their children are in it, too. */
must_check int cgroup_freeze_prepare(const struct cgroups *cs, const char *id, struct err *e);
must_check int cgroup_thaw(const struct cgroups *cs, const char *id, struct err *e);
int cgroups_can_freeze(const struct cgroups *cs);
/* v1: 1 if no process is in it and no counter shows a trace of an earlier one, so that another
 * box may use it, with the same limits. A counter that cannot be reset makes it 0, with one
 * exception: the highest number of processes. The next box must be allowed as many. */
int cgroup_is_clean(const struct cgroups *cs, const struct cgroup_counts *n);
int cgroup_is_empty(const struct cgroups *cs, const char *id); /* v1 */
/* SIGKILL to every process found in it, frozen ones too. Returns how many were seen. */
int cgroup_kill(const struct cgroups *cs, const char *id);
/* Calls each for every process in it, and returns the sum of its results. */
int cgroup_each_process(const struct cgroups *cs, const char *id, int (*each)(int pid, void *arg),
			void *arg);
/* Calls each for every cgroup below the parent. */
void cgroups_each(const struct cgroups *cs, void (*each)(const char *id, void *arg), void *arg);
/* rmdir. 0 when nothing is left (also if there never was one); -1 with EBUSY: try again. */
must_check int cgroup_remove(const struct cgroups *cs, const char *id, struct err *e);
