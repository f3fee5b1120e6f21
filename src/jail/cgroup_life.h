/* cgroup_life.h - what the files of cgroups have in common; no other file includes this.
 *   cgroup.c        found, made, entered, removed    cgroup_count.c    what a box has used
 *   cgroup_limit.c  what a box may use               cgroup_freeze.c   all its processes at once */
#pragma once
#include "jail/cgroup.h"
#include <stddef.h>

/* cgroup.c */
must_check int cgroup_put(int dir, const char *path, const char *value, struct err *e);
must_check int cgroup_get(int dir, const char *path, char *out, size_t size);
int cgroups_is_alias(const struct cgroups *cs,
		     unsigned i); /* v2: its directory belongs to another cgroup */

/* cgroup_limit.c */
/* All boxes together: memory of the machine less a reserve, 3/4 of the processes that it can
 * have. */
must_check int cgroups_limit_parent(const struct cgroups *cs, struct err *e);

/* cgroup_count.c */
/* After "key " in a file of a box, or the file's only one if key is NULL. UINT64_MAX: there is
 * none. */
uint64_t cgroup_number(int dir, const char *id, const char *file, const char *key);
