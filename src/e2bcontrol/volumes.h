/* volumes.h - E2B's volumes, mapped to Atoll's. Their content: volume_files.h. */
#pragma once
#include "api/fields.h"
#include "e2b/e2b.h"

extern const struct field e2b_volume_fields[];
struct store_volume;
/* The volume that the path names, by id or name, of the caller's team; 0: answered. */
int e2b_volumes_find(struct call *c, struct store_volume *out);

void e2b_volumes_create(struct call *c);
void e2b_volumes_list(struct call *c);
void e2b_volumes_show(struct call *c);
void e2b_volumes_delete(struct call *c);
