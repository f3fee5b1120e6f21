/* layer_store.h - the layers on disk, `<state>/layers/<id>`, and the process that manages them.
 * Owns: that folder. The process stays in the host's mount namespace when the keeper leaves it. It
 * creates a layer from a folder of a box, returns detached mounts, removes and verifies layers.
 * Each request has a socket for its answer, so requests do not wait for each other.
 *
 *   layer store ── per MAKE: a sealer (privileged; creates new.N, finalizes it, renames it)
 *                                └── a writer (an unused id, new.N is its root; talks to the box)
 *               per UNPACK: a sealer, and the process of image_process.h
 *               per UPPER: a sealer alone, because only root can copy files with their owners
 *
 * A layer gets its name by rename, after everything is on the disk. A crash leaves new.N or
 * drop.ID, which the next layer store removes; the lock on the folder shows whether a process still
 * uses it. */
#pragma once
#include "base/err.h"
#include "keeper/checkpoint_store.h"
#include "keeper/layer_tree.h"
#include "keeper/root_table.h"
#include "wire/wire.h"
#include <stdint.h>
#include <sys/types.h>

struct layer_store_request {
	enum {
		LAYER_STORE_MAKE = 1,
		LAYER_STORE_MOUNT,
		LAYER_STORE_CHECK,
		LAYER_STORE_REMOVE,
		LAYER_STORE_UPPER,
		LAYER_STORE_ROOT,
		LAYER_STORE_ROOT_CHECK,
		LAYER_STORE_UNPACK,
		LAYER_STORE_EXPORT,
		LAYER_STORE_IMAGE,
		LAYER_STORE_CHECKPOINT,
		LAYER_STORE_CHECKPOINT_SYNC,
		LAYER_STORE_CHECKPOINT_MERGE,
		LAYER_STORE_CHECKPOINT_EXPORT,
		LAYER_STORE_CHECKPOINT_IMPORT,
		LAYER_STORE_CHECKPOINT_MOUNT,
		LAYER_STORE_CHECKPOINT_RELEASE
	} what;
	uint32_t
		uid; /* IMAGE: of the box that needs it; MAKE: uid of the writer; UNPACK, IMPORT: the first of 65536; UPPER: of the box */
	char id[WIRE_LAYER_ID];
	char path[WIRE_PATH],
		place[WIRE_PATH]; /* MAKE: path of the folder in the box, and in the layer */
	uint64_t bytes_most, files_most;
	struct root root;         /* ROOT, ROOT_CHECK */
	char diff[WIRE_LAYER_ID]; /* UNPACK: what the archive must have; empty: anything */
	struct checkpoint_request checkpoint; /* CHECKPOINT..., with fds of checkpoint_fds */
};

struct layer_store_reply {
	struct err err; /* kind 0: done */
	struct layer_tree_sum sum;
	uint64_t skipped;                      /* UNPACK: device nodes */
	struct wire_checkpointed checkpointed; /* CHECKPOINT, CHECKPOINT_MERGE; without its head */
};

/* Called before the keeper leaves the host's mounts. Returns a socket to the process, which ends
 * when the socket is closed. layers: of layer_store_open(). roots: the folder of the roots;
 * checkpoints: that of checkpoint_store_open(). */
must_check int layer_store_start(int layers, int roots, int checkpoints, pid_t *out_pid,
				 struct err *e);
/* The folder of the layers; made if it is missing. */
must_check int layer_store_open(const char *state_dir, struct err *e);

/* conn: for MAKE and UPPER to init of the box; for UNPACK and EXPORT the archive; else -1. Returns
 * the socket for the answer. */
must_check int layer_store_ask(int process, const struct layer_store_request *o, int conn,
			       struct err *e);
/* The same with further descriptors: for CHECKPOINT those of struct checkpoint_fds, in this order. */
enum { LAYER_STORE_FDS = 6 };
must_check int layer_store_ask_with(int process, const struct layer_store_request *o,
				    const int *fds, unsigned n, struct err *e);
/* Waits for the answer. *out_mount: the mount of a MOUNT, the file of an IMAGE. */
must_check int layer_store_reply(int sock, struct layer_store_reply *out, int *out_mount,
				 struct err *e);

/* A detached mount, read-only, nosuid, nodev, with the owners on the disk: the caller maps
 * the ids. */
must_check int layer_store_mount(int process, const char *id, int *out_mount, struct err *e);
/* The same for the layer of a checkpoint. */
must_check int layer_store_checkpoint_mount(int process, const char *id, int *out_mount,
					    struct err *e);
/* No box has the layer of this checkpoint now, or it was deleted. */
void layer_store_checkpoint_release(int process, const char *id, int is_deleted);
/* The layer as an erofs image (layer_erofs.h), which is made if it does not exist. */
must_check int layer_store_image(int process, const char *id, uint32_t uid_base, int *out_file,
				 struct err *e);
