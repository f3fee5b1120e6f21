/* layer_store.h - the layers on disk, `<state>/layers/<id>`, and the process that looks after them.
 * Owns: that folder. The process stays among the host's mounts when the keeper leaves them; it makes
 * a layer of a box's folder, hands out detached mounts, removes, checks. Each order brings a socket
 * for its answer, so nobody waits for anybody else's.
 *
 *   stock process ── per MAKE: a sealer (privileged; makes new.N, seals it, gives it its name)
 *                                └── a writer (an id of nobody's, new.N is its root; speaks with the box)
 *
 * A name is given by rename, after everything is on the disk. What a crash leaves is called new.N or
 * drop.ID and is swept by the next one; the lock on the folder tells whether somebody is at it. */
#pragma once
#include "base/err.h"
#include "keeper/layer_tree.h"
#include "wire/wire.h"
#include <stdint.h>

struct layer_store_request {
	enum { STOCK_MAKE = 1, STOCK_MOUNT, STOCK_CHECK, STOCK_REMOVE } what;
	uint32_t uid; /* MAKE: of the writer */
	char id[WIRE_LAYER_ID];
	char path[WIRE_PATH],
		place[WIRE_PATH]; /* MAKE: of the folder in the box, and in the layer */
	uint64_t bytes_most, files_most;
};

struct layer_store_reply {
	struct err err; /* kind 0: done */
	struct layer_tree_sum sum;
};

/* Before the keeper leaves the host's mounts. Returns a socket to the process, which ends when that
 * is closed; out_dir: the folder of the layers. */
must_check int layer_store_start(const char *state_dir, int *out_dir, struct err *e);

/* conn: MAKE: to the box's init, else -1. Returns the socket on which the answer will come. */
must_check int layer_store_ask(int process, const struct layer_store_request *o, int conn,
			       struct err *e);
/* Waits for it. The mount of a MOUNT in *out_mount. */
must_check int layer_store_reply(int sock, struct layer_store_reply *out, int *out_mount,
				 struct err *e);

/* A detached mount, read-only, nosuid, nodev, owners as on the disk: the caller shifts them. */
must_check int layer_store_mount(int process, const char *id, int *out_mount, struct err *e);
