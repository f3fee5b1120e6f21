/* sandboxes.h - E2B's sandboxes: made, found, ended. */
#pragma once
#include "api/fields.h"
#include "e2b/e2b.h"

extern const struct field sandboxes_create_fields[];
void sandboxes_health(struct call *c);
void sandboxes_create(struct call *c);
void sandboxes_delete(struct call *c);
