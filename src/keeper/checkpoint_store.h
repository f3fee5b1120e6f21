/* checkpoint_store.h - the files of checkpoints: <state>/checkpoints/layers/<id>.erofs and index/<id>, mode 0600, and
 * the work on them in processes of the layer store.
 * Owns: both folders. Data is written to unnamed files, checked, and linked: first the layer, then the index.
 *
 *   layer store ── per request a process (privileged; opens files, freezes and thaws the box, links)
 *                    ├── capture  (checkpoint_process.h)
 *                    └── check
 *
 * If the process dies while the box is frozen, the keeper thaws the box: the socket for the answer closes. */
#pragma once
#include "base/err.h"
#include "layer/delta.h"
#include "layer/index.h"
#include "wire/wire.h"
#include <stdint.h>
#include <sys/types.h>

struct checkpoint_request {
	char box[WIRE_ID], id[WIRE_ID], base[WIRE_ID];
	char cgroup[WIRE_ID]; /* of the box */
	uint32_t cgroup_version;
	uint32_t is_frozen; /* it is paused: its programs are stopped already */
	uint32_t uid_base, check_uid;
	uint64_t bytes_most, files_most;
	uint32_t nfrom; /* MERGE */
	char from[WIRE_CHAIN][WIRE_ID];
	uint32_t is_deleted; /* RELEASE: its file no longer exists */
	uint32_t without;    /* test builds: bits of enum delta_rule */
};

/* Descriptors that come with a request. */
struct checkpoint_fds {
	int proc;            /* folder of init in /proc */
	int freezer, lister; /* the parent of the cgroups: v1 of both hierarchies, v2 the same */
	int events, touched; /* checkpoint_track.h; -1: without change tracking */
};

/* The folder; made if it is missing. */
must_check int checkpoint_store_open(const char *state_dir, struct err *e);
void checkpoint_store_name(const char *id, enum wire_checkpoint_what what, char out[64]);

/* Both processes, which wait, and the files of one checkpoint. They end with the process that started them. */
struct checkpoint_worker {
	pid_t capture, check;
	int capture_sock, check_sock;
	int layer, index;
};
must_check int checkpoint_worker_start(struct checkpoint_worker *w, int dir, uint32_t check_uid,
				       struct err *e);

/* In a process of its own. dir: of checkpoint_store_open(). */
must_check int checkpoint_store_take(int dir, struct checkpoint_worker *w,
				     const struct checkpoint_request *q,
				     const struct checkpoint_fds *fds,
				     struct wire_checkpointed *out, struct err *e);
must_check int checkpoint_store_sync(int dir, const char *id, struct err *e);
/* From the head of its index. 1: it exists; 0: it does not. */
must_check int checkpoint_store_figures(int dir, const char *id, const char *box,
					struct wire_checkpointed *out, struct err *e);
/* The end of a capture that has sent its result: writes the head, checks and names both files. */
must_check int checkpoint_store_finish(int dir, struct checkpoint_worker *w, const struct delta *d,
				       const struct delta_sum *sum, uint64_t began_ns,
				       struct wire_checkpointed *out, struct err *e);
/* A file with the one layer of q->from, or with all of them, merged; checked. */
must_check int checkpoint_store_combined(int dir, const struct checkpoint_request *q,
					 struct err *e);
/* One layer that replaces those of q->from, the first on top. index: -1, or a file with the index of a new checkpoint: the layer
 * gets only its entries, and the checkpoint gets both files. */
must_check int checkpoint_store_merge(int dir, const struct checkpoint_request *q, int index,
				      struct wire_checkpointed *out, struct err *e);
