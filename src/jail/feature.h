/* feature.h - the features of isolation as bits: what a host offers and what a box really has. */
#pragma once
#include <stdint.h>

enum jail_feature {
	LAYER_USERNS,    /* own user namespace */
	LAYER_UIDRANGE,  /* own range of 65,536 host uids */
	LAYER_MOUNTS,    /* own mount namespace and root */
	LAYER_PIDS_NS,   /* own pid namespace */
	LAYER_NET,       /* own network namespace, lo only */
	LAYER_IPC,       /* own ipc namespace */
	LAYER_UTS,       /* own host name */
	LAYER_CGROUP_NS, /* own view of the cgroup tree */
	LAYER_OVERLAY,   /* overlay root; without it the root is a private copy of the template */
	LAYER_IDMAP,     /* template files belong to the box's root, not to the overflow uid */
	LAYER_MEM,       /* memory limit by cgroup */
	LAYER_TASKS,     /* process limit by cgroup */
	LAYER_CPU,       /* cpu limit by cgroup */
	LAYER_DEVICES,   /* device allowlist by cgroup */
	LAYER_DISK,      /* disk and file-count limit */
	LAYER_CAPS,      /* capability bounds */
	LAYER_NNP,       /* no_new_privs */
	LAYER_SECCOMP,   /* system call allowlist */
	LAYER_LANDLOCK,  /* landlock domain */
	LAYER_COUNT,
};

#define FEATURE_BIT(l) (UINT64_C(1) << (l))

struct feature_row {
	const char *name; /* "user-namespace" */
	const char *why;
	int mandatory;       /* without it untrusted code is refused */
	const char *missing; /* what its absence means */
};
extern const struct feature_row jail_layers[LAYER_COUNT];
const char *const *layer_names(void); /* by bit, NULL-terminated */
