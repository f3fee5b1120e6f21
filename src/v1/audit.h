/* audit.h - /v1/audit: which key did what, and whether it succeeded. */
#pragma once
#include "api/api.h"

extern const struct field audit_list_query[];

void audit_list(struct call *c);
