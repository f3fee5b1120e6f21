/* volumes.h - /v1/volumes: disks that outlive boxes.
 * One box may write to a volume at a time, or any number may read it; the store and the keeper both
 * see to that. Its quota is the size of its disk, and cannot be exceeded. */
#pragma once
#include "api/api.h"
#include "fleet/berth.h"

extern const struct field volumes_create_fields[], volumes_list_query[];

/* "volumes": [{name, path, read_only}] of a request for a box, into `out`. */
must_check int volumes_want(struct call *c, const json_t *list, struct berth_want *out,
			    struct err *e);

void volumes_create(struct call *c);
void volumes_list(struct call *c);
void volumes_show(struct call *c);
void volumes_delete(struct call *c);
