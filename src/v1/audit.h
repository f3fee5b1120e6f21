/* audit.h - /v1/audit: who did what, and whether it worked. */
#pragma once
#include "api/api.h"

extern const struct field audit_list_query[];

void audit_list(struct call *c);
