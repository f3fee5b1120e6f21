/* grants.h - what a team may use on this node of a cluster: a part of its limit, which a gateway gave to this node. */
#pragma once
#include "store/store.h"

enum store_resource { STORE_EXECUTIONS, STORE_OUTPUT, STORE_COMPUTE, STORE_RESOURCES };
/* As in the table of a gateway: executions, output_bytes, compute_ms. NULL: none. */
const char *store_resource_name(enum store_resource r);

struct store_grant {
	uint64_t limit; /* of the team in the whole cluster; 0: there is no grant */
	int32_t period; /* its first day, as store_day(); of computing: of the month */
	uint64_t
		amount; /* what the team may use here in that period, with what it has used before */
	int64_t version; /* of the amount; a later one counts */
};
/* No row: all fields are 0. */
must_check int store_grants_get(struct store *s, const char *team,
				struct store_grant out[STORE_RESOURCES], struct err *e);
must_check int store_grant_put(struct store *s, const char *team, enum store_resource r,
			       const struct store_grant *g, struct err *e);
