/* sandbox_list.h - GET /sandboxes and /v2/sandboxes. */
#pragma once
#include "api/fields.h"
#include "e2b/e2b.h"

extern const struct field listing_query[], listing_v1_query[];
void sandbox_list_v1(struct call *c); /* running boxes, all in one answer */
void sandbox_list_v2(struct call *c); /* in pages */
