/* changes.h - GET /v1/boxes/{box}/changes: files that differ from those of a new box. */
#pragma once
#include "api/api.h"

extern const struct field changes_query[];

void changes_list(struct call *c);
