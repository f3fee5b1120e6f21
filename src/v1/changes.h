/* changes.h - GET /v1/boxes/{box}/changes: what is different from the box's beginning. */
#pragma once
#include "api/api.h"

extern const struct field changes_query[];

void changes_list(struct call *c);
