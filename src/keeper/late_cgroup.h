/* late_cgroup.h - cgroups that the loop creates while a builder thread clones the box (cgroup v1).
 * Owns: their descriptors until late_cgroup_wait() or late_cgroup_end(). */
#pragma once
#include "base/err.h"
#include "jail/cgroup.h"
#include <pthread.h>

struct host_state;
struct spec;

struct late_cgroup {
	pthread_mutex_t lock;
	pthread_cond_t there;
	int ready;
	int fds[CG_NCTL], n;
	struct err err;
};

struct late_cgroup *late_cgroup_new(void); /* never NULL */
/* On the thread of the loop. */
void late_cgroup_make(const struct host_state *h, const char *name, struct box_limits lim,
		      struct late_cgroup *c);
/* On the builder thread, when the launch needs the cgroup: sp->bring_arg is the late_cgroup. */
must_check int late_cgroup_wait(struct spec *sp, struct err *e);
/* Waits and frees it; NULL: nothing. Also if the launch failed before it needed the cgroup. */
void late_cgroup_end(struct late_cgroup *c);
