/* checkpoint_stop.h - stops all programs of a box for a moment, without its freezer.
 *
 * With cgroup v1, a box enters the hierarchy of the freezer when it is frozen for the first time, and every later fork on the
 * host waits meanwhile. ptrace stops a few threads in less than a millisecond. If the process that has stopped them dies,
 * the kernel lets them continue.
 * Does not work, and is undone, if a thread is traced already, does not stop soon (vfork, uninterruptible sleep), or if
 * there are many: then the caller uses the freezer. */
#pragma once
#include <stddef.h>
#include <sys/types.h>
struct cgroups;

struct checkpoint_stop {
	struct checkpoint_stopped {
		pid_t tid;
		int signal; /* it was about to receive this one */
		int is_stopped;
	} * v;
	size_t n, room;
};

/* 1: no thread of the box runs, until the release; 0: nothing has changed. */
int checkpoint_stop_all(struct checkpoint_stop *s, const struct cgroups *cs, const char *cgroup);
void checkpoint_stop_release(struct checkpoint_stop *s);
