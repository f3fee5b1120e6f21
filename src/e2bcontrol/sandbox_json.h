/* sandbox_json.h - a box in E2B's JSON for a sandbox: of a create, in a list, in full. */
#pragma once
#include "e2b/e2b.h"

json_t *sandbox_json_created(const struct call *c, const struct box *b); /* create, connect, fork */
json_t *sandbox_json_listed(const struct box *b);
json_t *sandbox_json_detail(const struct call *c, const struct box *b);

/* The effective value of a limit that is not set. */
unsigned sandbox_json_cpus(const struct store_limits *l);
uint64_t sandbox_json_memory(const struct store_limits *l); /* bytes */
