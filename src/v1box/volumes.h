/* volumes.h - /v1/volumes: disks that exist longer than boxes. One box at a time may write to a
 * volume, or any number may read it; the store and the keeper both enforce that. Its quota is the
 * size of its disk, and cannot be exceeded. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"

extern const struct field volumes_create_fields[], volumes_list_query[];

/* "volumes": [{name, path, read_only}] of a request for a box, into `out`. */
must_check int volumes_want(struct call *c, const json_t *list, struct box_spec *out,
			    struct err *e);

struct store_volume;
typedef void volumes_made(struct call *c, const struct store_volume *v);
/* For other surfaces: name and bytes of the body; calls `answer` when the volume exists. */
void volumes_make(struct call *c, volumes_made *answer);
void volumes_drop(struct call *c,
		  const struct store_volume *v); /* 204, or 409 while a box has it */

void volumes_create(struct call *c);
void volumes_list(struct call *c);
void volumes_show(struct call *c);
void volumes_delete(struct call *c);
