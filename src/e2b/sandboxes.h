/* sandboxes.h - E2B's sandboxes: made, found, ended. */
#pragma once
#include "api/fields.h"
#include "e2b/e2b.h"

extern const struct field sandboxes_create_fields[];
must_check int sandboxes_token(char out[E2B_TOKEN + 1], struct err *e);
json_t *sandboxes_json(struct call *c, const struct berth *b); /* of create, connect, fork */
void sandboxes_health(struct call *c);
void sandboxes_create(struct call *c);
void sandboxes_delete(struct call *c);
