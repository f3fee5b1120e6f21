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

/* Creates a snapshot of b for this call. If the client disconnects, done() is not called and no
 * snapshot is stored. */
typedef void snapshots_done(struct call *c, const struct store_snapshot *row, const struct err *e);
void snapshots_take(struct call *c, struct box *b, const struct store_snapshot *want, int hidden,
		    snapshots_done *done);
/* Copies the files into a box that was just created for this call. On an error, or if the client
 * disconnects, the box is deleted. */
void snapshots_fill(struct call *c, struct box *b, const char *id,
		    void (*done)(struct call *c, struct box *b, const struct err *e));
