/* host_state.h - what the keeper opened and prepared at its start, before host paths were gone.
 * Owns: every descriptor and table here, for the life of the keeper. Read-only afterwards, so the
 * maker threads use it without locks. */
#pragma once
#include "base/err.h"
#include "jail/cgroup.h"
#include "jail/probe.h"
#include "jail/seccomp.h"
#include <stdint.h>

struct nets;

struct host_state {
	/* clang-format off */
	struct probe probe;
	struct cgroups cgroups;
	struct seccomp filter;
	uint64_t layers; /* what every box gets */
	uint64_t boot;
	int rootless;    /* root of our own user namespace only; boxes share our one id */
	int run;         /* the run folder; our working directory too, for socket names */
	int records;     /* of boxes: records.h */
	int proc;        /* the host's /proc */
	int self;        /* our own pidfd: children see by it whether we live */
	int init_exe;    /* sealed memfd */
	int disks;       /* socket to the disk process */
	int stock;       /* to the stock process; -1: without root there are no layers */
	int layers_dir;  /* the folder of the layers, or -1 */
	struct nets *nets; /* networks that wait for boxes; locks for itself. NULL: a box makes its own */
	unsigned files_most; /* descriptors that boxes may use up; the rest is for whoever connects */
	uint64_t files_hard; /* and all there are */
	unsigned pids_most;  /* of the host */
	unsigned open_most; /* boxes of which what is looked at again and again stays open */
	int lock;        /* held while we are the keeper */
	/* clang-format on */
};

/* Ends with us in the stage's mount namespace. Both folders exist after it. */
/* Around what must work even when boxes have used up all other descriptors. The loop's thread only. */
void host_use_reserve(const struct host_state *h, int on);
must_check int host_init(struct host_state *h, const char *run_dir, const char *state_dir,
			 struct err *e);
