/* cgroup_freeze.c - freezes, thaws and kills all processes of a box at once. */
#include "jail/cgroup_life.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Calls each() for every listed process, and returns the sum of its results. The list may change
 * between two reads. */
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

int cgroup_each_process(const struct cgroups *cs, const char *id, int (*each)(int pid, void *arg),
			void *arg)
{
	for (unsigned i = 0; i < CG_NCTL; i++)
		if (cs->dir[i] >= 0)
			return each_listed(cs->dir[i], id, each, arg);
	return 0;
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
		if (!cgroups_is_alias(cs, i))
			seen += each_listed(cs->dir[i], id, end_one, NULL);
	if (seen) /* a killed process must be thawed to end */
		(void)!cgroup_thaw(cs, id, &ignored);
	return seen;
}

/* ---- frozen ---- */

enum { FREEZE_TRIES = 400, FREEZE_PAUSE_US = 5000, GATHER_ROUNDS = 8 }; /* two seconds */

/* Most programs stop within 0.1 ms: the first pauses are short. */
static void freeze_pause(unsigned i)
{
	usleep(i < 7 ? 50u << i : FREEZE_PAUSE_US);
}

int cgroups_can_freeze(const struct cgroups *cs)
{
	return cs->version == 2 || (cs->version == 1 && cs->dir[CG_FREEZER] >= 0);
}

static int cannot_freeze(const struct cgroups *cs, struct err *e)
{
	return err_set(e, ERR_DENIED, "boxes cannot be frozen on this host: %.120s",
		       cs->version ? "no cgroup controller 'freezer'" : cs->why_not);
}

/* No effect on a process that is in it already; a process that has ended meanwhile is no
 * failure. */
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
static int cgroup_freeze_lister(const struct cgroups *cs)
{
	return cs->dir[CG_PIDS] >= 0     ? cs->dir[CG_PIDS]
	       : cs->dir[CG_MEMORY] >= 0 ? cs->dir[CG_MEMORY]
					 : cs->dir[CG_CPU];
}

/* v1: a process that is moved into a frozen group freezes at once; children of the other
 * processes start outside. So this repeats until all processes are inside: none of them can
 * fork. Several rounds without a pause, to be faster than a forking process; then a pause,
 * because a process that is ending cannot be moved and needs the processor for it. */
static int cgroup_freeze_gather(const struct cgroups *cs, const char *id, struct err *e)
{
	char path[64];
	auto_fd int procs = -1;

	snprintf(path, sizeof(path), "%s/cgroup.procs", id);
	procs = openat(cs->dir[CG_FREEZER], path, O_WRONLY | O_CLOEXEC);
	if (procs < 0)
		return err_sys(e, "open %s of freezer", path);
	for (unsigned i = 1; i <= FREEZE_TRIES * GATHER_ROUNDS; i++) {
		int all = each_listed(cgroup_freeze_lister(cs), id, count_one, NULL);

		if (each_listed(cs->dir[CG_FREEZER], id, count_one, NULL) >= all)
			return 0;
		each_listed(cgroup_freeze_lister(cs), id, move_one, &procs);
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
	if (cgroup_put(cs->dir[CG_FREEZER], path, "FROZEN", e) < 0 ||
	    cgroup_freeze_gather(cs, id, e) < 0)
		return -1;
	for (unsigned i = 0; i < FREEZE_TRIES; i++) {
		/* Reading the state makes the kernel check it. Writing it again is for processes
		 * that were signalled while they slept in vfork(): the kernel does not signal
		 * them a second time. */
		if (cgroup_get(cs->dir[CG_FREEZER], path, state, sizeof(state)) == 0 &&
		    strncmp(state, "FROZEN", 6) == 0)
			return 0;
		freeze_pause(i);
		if (cgroup_put(cs->dir[CG_FREEZER], path, "FROZEN", e) < 0)
			return -1;
	}
	return err_set(e, ERR_SYS, "some program does not stop");
}

static int freeze_v2(const struct cgroups *cs, const char *id, struct err *e)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/cgroup.freeze", id);
	if (cgroup_put(cs->dir[CG_MEMORY], path, "1", e) < 0)
		return -1;
	for (unsigned i = 0; i < FREEZE_TRIES; i++) {
		if (cgroup_number(cs->dir[CG_MEMORY], id, "cgroup.events", "frozen") == 1)
			return 0;
		freeze_pause(i);
	}
	return err_set(e, ERR_SYS, "some program does not stop");
}

int cgroup_freeze_prepare(const struct cgroups *cs, const char *id, struct err *e)
{
	if (!cgroups_can_freeze(cs))
		return cannot_freeze(cs, e);
	if (cs->version != 1)
		return 0;
	if (mkdirat(cs->dir[CG_FREEZER], id, 0755) < 0 && errno != EEXIST)
		return err_sys(e, "make cgroup %s in freezer", id);
	return cgroup_freeze_gather(cs, id, e);
}

int cgroup_freeze(const struct cgroups *cs, const char *id, struct err *e)
{
	struct err ignored;

	if (!cgroups_can_freeze(cs))
		return cannot_freeze(cs, e);
	if ((cs->version == 1 ? freeze_v1 : freeze_v2)(cs, id, e) == 0)
		return 0;
	(void)!cgroup_thaw(cs, id, &ignored); /* the first failure is reported */
	return err_in(e, "freeze %s", id);
}

int cgroup_thaw(const struct cgroups *cs, const char *id, struct err *e)
{
	int v1 = cs->version == 1;
	char path[64];

	if (!cgroups_can_freeze(cs))
		return cannot_freeze(cs, e);
	snprintf(path, sizeof(path), v1 ? "%s/freezer.state" : "%s/cgroup.freeze", id);
	if (cgroup_put(cs->dir[v1 ? CG_FREEZER : CG_MEMORY], path, v1 ? "THAWED" : "0", e) == 0)
		return 0;
	return v1 && e->sys == ENOENT ? 0 : err_in(e, "thaw %s", id); /* it never was frozen */
}
