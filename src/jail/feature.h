/* feature.h - the features of isolation as bits: those of the host and those of a box. */
#pragma once
#include <stdint.h>

enum jail_feature {
	FEATURE_USERNS,    /* own user namespace */
	FEATURE_UIDRANGE,  /* own range of 65,536 host uids */
	FEATURE_MOUNTS,    /* own mount namespace and root */
	FEATURE_PIDS_NS,   /* own pid namespace */
	FEATURE_NET,       /* own network namespace, lo only */
	FEATURE_IPC,       /* own ipc namespace */
	FEATURE_UTS,       /* own host name */
	FEATURE_CGROUP_NS, /* own view of the cgroup tree */
	FEATURE_OVERLAY,   /* overlay root; without it the root is a private copy of the template */
	FEATURE_IDMAP,     /* template files belong to the box's root, not to the overflow uid */
	FEATURE_MEM,       /* memory limit by cgroup */
	FEATURE_TASKS,     /* process limit by cgroup */
	FEATURE_CPU,       /* cpu limit by cgroup */
	FEATURE_DEVICES,   /* device allowlist by cgroup */
	FEATURE_DISK,      /* disk and file-count limit */
	FEATURE_CAPS,      /* capability bounds */
	FEATURE_NNP,       /* no_new_privs */
	FEATURE_SECCOMP,   /* system call allowlist */
	FEATURE_LANDLOCK,  /* landlock domain */
	FEATURE_COUNT,
};

#define FEATURE_BIT(l) (UINT64_C(1) << (l))

struct feature_row {
	const char *name; /* "user-namespace" */
	const char *why;
	int mandatory;       /* without it untrusted code is refused */
	const char *missing; /* what its absence means */
};
extern const struct feature_row jail_features[FEATURE_COUNT];
const char *const *layer_names(void); /* by bit, NULL-terminated */
