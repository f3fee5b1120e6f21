/* create.h - POST /sandboxes and /v2/sandboxes. */
#pragma once
#include "api/fields.h"
#include "e2b/e2b.h"

extern const struct field create_fields[];
void create_v1(struct call *c); /* a token is returned only on request, 15 s */
void create_v2(struct call *c); /* a token always, 300 s */
