/* copies.h - /cluster/copies and /cluster/restart: how the gateways of a cluster copy snapshots from node to node, and
 * start a box with on_loss restart on another node. For requests over tunnels only.
 *
 *   GET    /cluster/copies             {held: [...], wanted: [...]}
 *   GET    /cluster/copies/{snapshot}  the definition of the box and the file, in the form of copy_file.h
 *   GET    /cluster/snapshots/{snapshot}  the same of a snapshot of the caller's team, with its own definition
 *   PUT    /cluster/copies/{snapshot}  either
 *   DELETE /cluster/copies/{snapshot}
 *   POST   /cluster/objects/put        {snapshot, url} -> {sha256, bytes}    to the object store; of the caller's team
 *   POST   /cluster/objects/get        {snapshot, url, sha256, bytes}        from it
 *   POST   /cluster/objects/delete     {url}
 *   POST   /cluster/restart            {snapshot, epoch}
 *   POST   /cluster/leave              {box, stays_because?}  a box moves away: copies_leave.c
 *   POST   /cluster/left               {box}
 *
 * `wanted` has for each box: `leaving`, its last snapshot on this node ("": not complete), if it moves away; `may_leave`:
 * it can do so now. */
#pragma once
#include "api/api.h"

extern const struct api_surface copies_surface;

/* Changes when the answer of GET /cluster/copies changes; 0: there are neither copies nor such boxes. */
uint32_t copies_revision(struct api *a);
