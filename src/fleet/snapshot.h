/* snapshot.h - the files of a box in one file of ours, and from there into other boxes.
 * Owns:         <state>/snapshots; one file there while it is written or read.
 * Does not own: who may, and under which name (api/); the rows (store/snapshots.h).
 *
 *   box: tar | zstd --> ID.part, renamed to ID.snap --> zstd | tar: another box
 *
 * The programs run in the boxes, as their root: we never look into what they say. A row is there
 * before its file, and says that it is whole after it is: what a crash leaves is found by its row. */
#pragma once
#include "fleet/box.h"
#include "store/snapshots.h"

must_check int snapshots_init(struct fleet *f, const char *state, uint64_t team_bytes,
			      struct err *e);
void snapshots_fini(struct fleet *f);

struct snapshot;
/* The last word. row: of what was taken, whole now; of a filling, only its id is set. e: it failed, and
 * nothing is left of one that was to be taken. box: by its id, it may be gone. */
typedef void snapshot_done(void *ctx, const struct store_snapshot *row, const char *box,
			   const struct err *e);

/* Packs what is the box's own: all but mounts of others, /proc, /dev, /sys, /usr. The box runs on
 * meanwhile; who wants its files at one moment ends its programs first. want: team, name, tag; the rest
 * is filled in. hidden: it is in no list, and whoever took it removes it. */
must_check int snapshot_take(struct fleet *f, struct box *b, const struct store_snapshot *want,
			     int hidden, snapshot_done *done, void *ctx, struct snapshot **out,
			     struct err *e);
/* Unpacks one into a new box. */
must_check int snapshot_fill(struct fleet *f, struct box *b, const char *id, snapshot_done *done,
			     void *ctx, struct snapshot **out, struct err *e);
void snapshot_cancel(struct snapshot *s); /* done() is not called; NULL is fine */
/* Row and file. */
must_check int snapshot_remove(struct fleet *f, const char *id, struct err *e);
