/* shared_rows.h - routes of a node for gateways, over tunnels only. GET /cluster/rows is answered when the directory of the cluster has all
 * rows of this node. PUT /cluster/rows: a gateway gives this node what teams have set (store/shared_rows.h).
 *
 *   {"rows": [{"kind", "id", "row": {...} or null}], "keep": ["kind id", ...]}
 *   -> {"secrets": {"team/name": {"version", "updated_ns"}, ...}}
 *
 * Values that are encrypted in a store ("sealed") are here "value", in base64: each machine has a key of its own. keep:
 * rows that came from a gateway and are not in it are removed, but for secrets, of which a node has only those that its
 * boxes use. The answer has the secrets that this node has. */
#pragma once
#include "api/api.h"

extern const struct api_surface shared_rows_surface;

/* Boxes, webhooks and programs use the row as it is now in the store: api->shared_row_came. */
void shared_row_came(struct api *a, const char *kind, const char *id);
