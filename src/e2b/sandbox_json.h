/* sandbox_json.h - a box as E2B tells of a sandbox: of a create, in a list, in full. */
#pragma once
#include "e2b/e2b.h"

json_t *shape_sandbox(const struct call *c, const struct box *b); /* create, connect, fork */
json_t *shape_listed(const struct box *b);
json_t *shape_detail(const struct call *c, const struct box *b);

/* What a limit that is not set comes to. */
unsigned shape_cpus(const struct store_limits *l);
uint64_t shape_memory(const struct store_limits *l); /* bytes */
