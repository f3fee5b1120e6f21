/* errands.h - /v1/agents: an agent with a box of its own, told as it happens. */
#pragma once
#include "api/api.h"

extern const struct field errands_fields[];

void errands_run(struct call *c);
