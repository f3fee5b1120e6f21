/* env.h - /v1/boxes/{box}/env: the variables that every program of a box gets. */
#pragma once
#include "api/api.h"

extern const struct field env_fields[];
void env_show(struct call *c);
void env_set(struct call *c);
