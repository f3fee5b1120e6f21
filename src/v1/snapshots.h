/* snapshots.h - /v1/snapshots: the files of a box, for others to begin with. */
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
/* A name as somebody gives one: "[team/]name[:tag]", in small letters. ERR_INVALID. */
must_check int snapshots_name(const char *team, const char *text, struct store_snapshot *out,
			      struct err *e);

/* Takes one of b for this call; done() is not called when the client has left: then none is taken. */
typedef void snapshots_done(struct call *c, const struct store_snapshot *row, const struct err *e);
void snapshots_take(struct call *c, struct box *b, const struct store_snapshot *want, int hidden,
		    snapshots_done *done);
/* Fills a box that was just made for this call. With e, or when the client leaves, it is ended. */
void snapshots_fill(struct call *c, struct box *b, const char *id,
		    void (*done)(struct call *c, struct box *b, const struct err *e));
