/* host_state.h - what the keeper opened and prepared at its start, before it left the host's
 * mounts.
 * Owns: every descriptor and table here, for the life of the keeper. Read-only afterwards, so the
 * builder threads use it without locks; the pids of services belong to the loop's thread. */
#pragma once
#include "base/err.h"
#include "jail/cgroup.h"
#include "jail/probe.h"
#include "jail/seccomp.h"
#include "keeper/host_service.h"
#include "tier/tier.h"
#include <stdint.h>
#include <sys/types.h>

struct netns_pool;

struct host_state {
	/* clang-format off */
	struct probe probe;
	struct cgroups cgroups;
	struct seccomp filter;
	uint64_t layers; /* features that every box gets */
	uint64_t boot;
	int rootless;    /* root of its own user namespace only; boxes share the one id */
	char *state_dir;
	int host_mounts; /* the mount namespace of the host; -1: this keeper never left it */
	pid_t service_pids[HOST_SERVICES];
	int run;         /* the run folder; also the working directory, for socket names */
	int records;     /* record file of boxes: record_file.h */
	int proc;        /* the host's /proc */
	int self;        /* pidfd of the keeper: children detect its end with it */
	int init_exe;    /* sealed memfd */
	struct tier_host tier_host; /* folder and images of isolation tiers; tier_host.mux_exe: sealed memfd */
	int tier_service; /* socket to the tier service */
	int disks;       /* socket to the disk service */
	int layer_store;       /* socket to the layer store; -1: without root there are no layers */
	int procimages;  /* socket to the service of process images; -1: none without root */
	int layers_dir;  /* the folder of the layers, or -1 */
	int roots_dir;   /* the folder of the roots, or -1 */
	int checkpoints_dir; /* the folder of the checkpoints, or -1 */
	struct netns_pool *netns_pool; /* pooled network namespaces; has its own lock. NULL: each box creates
			    * its own */
	unsigned files_most; /* descriptors that boxes may use; the rest is for clients */
	uint64_t files_hard; /* the hard limit */
	unsigned pids_most;  /* limit of the host */
	unsigned open_most; /* boxes whose frequently read files stay open */
	int lock;        /* held while this process is the keeper */
	/* clang-format on */
};

/* Encloses code that must work even if boxes have used all other descriptors. Only on the loop's
 * thread. */
void host_use_reserve(const struct host_state *h, int on);
/* The executables of init and of mux, as sealed memory files. */
must_check int host_seal_images(int *out_init, int *out_mux, struct err *e);
/* Ends in the keeper's own mount namespace; on a host without namespaces, and with `process`, in that of the host: then
 * tier_host.no_namespaces is the reason, and only boxes of the tier process are started. Both folders exist after it. */
must_check int host_init(struct host_state *h, const char *run_dir, const char *state_dir,
			 int process, struct err *e);
