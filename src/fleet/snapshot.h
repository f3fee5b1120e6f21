/* snapshot.h - stores the files of a box in one file of the server, and copies them into other
 * boxes.
 * Owns:         <state>/snapshots and <state>/copies; one file there while it is written or read.
 * Does not own: authorization and names (v1/); the rows (store/snapshots.h).
 *
 *   box: tar | zstd --> ID.part, renamed to ID.snap --> zstd | tar: another box
 *
 * The programs run in the boxes, as root of the box: the server never parses their output. The row
 * is written before the file, and marked complete after the file is: so the rest of a crash is
 * found by its row. */
#pragma once
#include "fleet/box.h"
#include "store/snapshots.h"

must_check int snapshots_init(struct fleet *f, const char *state, uint64_t team_bytes,
			      struct err *e);
void snapshots_fini(struct fleet *f);

struct snapshot;
/* Called last. row: the new snapshot, complete now; after snapshot_fill() only its id is set. e: it
 * failed, and nothing is left of a new snapshot. box: an id, because the box may have ended. */
typedef void snapshot_done(void *ctx, const struct store_snapshot *row, const char *box,
			   const struct err *e);

/* Packs the files of the box: everything except other mounts, /proc, /dev, /sys, /usr. The box
 * keeps running; a caller that needs a consistent state ends its programs first. want: team, name,
 * tag; the rest is filled in. hidden: the snapshot is in no list, and the caller removes it. */
must_check int snapshot_take(struct fleet *f, struct box *b, const struct store_snapshot *want,
			     int hidden, snapshot_done *done, void *ctx, struct snapshot **out,
			     struct err *e);
/* Unpacks a snapshot into a new box. */
must_check int snapshot_fill(struct fleet *f, struct box *b, const char *id, snapshot_done *done,
			     void *ctx, struct snapshot **out, struct err *e);
/* The same with a copy of another node's snapshot, <state>/copies/ID.snap, whose digest is checked (hexadecimal). */
must_check int snapshot_fill_copy(struct fleet *f, struct box *b, const char *id,
				  const char *sha256, snapshot_done *done, void *ctx,
				  struct snapshot **out, struct err *e);
void snapshot_cancel(struct snapshot *s); /* done() is not called; NULL is fine */
/* The file of a complete snapshot of this node, or of a copy. */
must_check int snapshot_open(struct fleet *f, const char *id, int *out_fd, struct err *e);
/* Removes row and file. */
must_check int snapshot_remove(struct fleet *f, const char *id, struct err *e);
