/* snapshots.h - /v1/snapshots: stored copies of the files of a box, from which new boxes start. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"
#include "fleet/snapshot.h"

extern const struct field snapshots_create_fields[], snapshots_list_query[];
void snapshots_create(struct call *c);
void snapshots_list(struct call *c);
void snapshots_show(struct call *c);
void snapshots_delete(struct call *c);

/* "ID", "ID:default", "name", "name:tag" or "team/name:tag", of this team. ERR_NOT_FOUND. */
must_check int snapshots_find(struct api *a, const char *team, const char *text,
			      struct store_snapshot *out, struct err *e);
/* Parses a name of a request: "[team/]name[:tag]", in lower case. ERR_INVALID. */
must_check int snapshots_name(const char *team, const char *text, struct store_snapshot *out,
			      struct err *e);

enum snapshots_how {
	SNAPSHOTS_PACKED,
	SNAPSHOTS_HIDDEN,     /* packed, in no list, and removed by the caller */
	SNAPSHOTS_CHECKPOINT, /* a checkpoint; packed if the box has none */
	SNAPSHOTS_MEMORY, /* the same with the running programs; files only where the tier has none */
};
/* Creates a snapshot of b for this call. If the client disconnects, done() is not called and no
 * snapshot is stored. */
typedef void snapshots_done(struct call *c, const struct store_snapshot *row, const struct err *e);
void snapshots_take(struct call *c, struct box *b, const struct store_snapshot *want,
		    enum snapshots_how how, snapshots_done *done);
/* Where its files are a checkpoint: the parameters of a box with them. The texts live as long as the call. 0: it is
 * packed, and snapshots_fill() must be called when the box exists. */
must_check int snapshots_spec(struct call *c, const struct store_snapshot *x, struct box_spec *out,
			      struct err *e);
/* Removes the snapshot and its files. */
must_check int snapshots_remove(struct api *a, const struct store_snapshot *x, struct err *e);
/* Copies the files into a box that was just created for this call. On an error, or if the client
 * disconnects, the box is deleted. */
void snapshots_fill(struct call *c, struct box *b, const char *id,
		    void (*done)(struct call *c, struct box *b, const struct err *e));
