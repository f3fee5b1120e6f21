/* tiers.h - the isolation tiers of this host: which are offered, and what the others need.
 * Owns: the request that waits for the keeper (api.tiers_call). */
#pragma once
#include "api/api.h"

extern const struct field tiers_refresh_fields[]; /* none */
void tiers_list(struct call *c);
void tiers_refresh(struct call *c); /* the keeper examines its host again; for operators */
