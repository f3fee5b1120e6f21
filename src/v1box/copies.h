/* copies.h - /cluster/copies and /cluster/restart: how the gateways of a cluster copy snapshots of boxes with
 * on_loss restart from node to node, and start such a box on another node. For requests over tunnels only.
 *
 *   GET    /cluster/copies             {revision, held: [...], wanted: [...]}
 *   GET    /cluster/copies/{snapshot}  the definition of the box as one line of JSON, the file, its SHA-256 (64 digits)
 *   PUT    /cluster/copies/{snapshot}  the same
 *   DELETE /cluster/copies/{snapshot}
 *   POST   /cluster/restart            {snapshot, epoch} */
#pragma once
#include "api/api.h"

extern const struct api_surface copies_surface;

/* Changes when the answer of GET /cluster/copies changes; 0: there are neither copies nor such boxes. */
uint32_t copies_revision(struct api *a);
