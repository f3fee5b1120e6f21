/* volumes.h - E2B's volumes are ours. What is in one is reached from a sandbox that has it. */
#pragma once
#include "api/fields.h"
#include "e2b/e2b.h"

extern const struct field e2b_volume_fields[];
void e2b_volumes_create(struct call *c);
void e2b_volumes_list(struct call *c);
void e2b_volumes_show(struct call *c);
void e2b_volumes_delete(struct call *c);
