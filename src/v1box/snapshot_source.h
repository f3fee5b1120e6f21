/* snapshot_source.h - the files with which a box starts: a snapshot of this node, or the copy of one of another node, which a
 * gateway has sent here before it passed the request on (copies.h).
 * Owns: nothing. */
#pragma once
#include "v1box/snapshots.h"

/* As snapshots_find(); and copies, by id. ERR_NOT_FOUND. */
must_check int snapshot_source_find(struct api *a, const char *team, const char *text,
				    struct store_snapshot *out, struct err *e);
/* As snapshot_fill(); the digest of a copy is checked while it is read. */
must_check int snapshot_source_fill(struct api *a, struct box *b, const char *id,
				    snapshot_done *done, void *ctx, struct snapshot **out,
				    struct err *e);

/* The text that is sent in front of the file of a snapshot (copies.c). */
json_t *snapshot_source_definition(const struct store_snapshot *x);
/* Reads it. team: of the snapshot. ERR_INVALID. */
must_check int snapshot_source_definition_read(const json_t *doc, struct store_snapshot *out,
					       struct err *e);
