/* grants.h - PUT /cluster/quota of a node, for gateways, over tunnels only: what the team of the caller may use on this node
 * (store/grants.h).
 *
 *   {"grants": [{"resource", "limit", "period", "amount", "version", "lower"}]}
 *   -> {"executions": {"used", "amount"}, "output_bytes": ..., "compute_ms": ...} */
#pragma once
#include "api/api.h"

extern const struct api_surface grants_surface;
