/* copies.h - copies of snapshots of boxes with on_loss restart: this gateway has each of them on COPIES other nodes, and
 * starts the boxes of a lost node from them.
 * Owns:         what each node has and wants, files on their way, restarts in progress.
 * Does not own: the files; the decision which node has a box (coordinator.h, COORDINATOR_MOVE_BOX).
 *
 *   heartbeat: `copies` has changed -> GET /cluster/copies -> what the node has and wants
 *   wanted by a node, on fewer than COPIES others -> copy_job.h
 *   the node that had the box wants another one, or none -> DELETE
 *   node is lost: its boxes with copies -> restart.h
 *   node drains and its boxes move: leaving.h -> the same */
#pragma once
#include "cluster/tunnel.h"
#include "coordinator/coordinator.h"
#include "gateway/leases.h"
#include "gateway/moved.h"
#include <jansson.h>

enum { COPIES = 2 };

struct gateway_copies;
struct gateway_copies_conf { /* all borrowed */
	struct loop *loop;
	struct tunnels *tunnels;
	struct gateway_leases *leases;
	struct coordinator *coordinator;
	struct cluster_client *engines;
	struct gateway_moved *moved;
};
struct gateway_copies *gateway_copies_new(const struct gateway_copies_conf *conf);
void gateway_copies_free(
	struct gateway_copies
		*c); /* allowed on NULL; after coordinator_free(), before the others */

/* Rule 8: gateway_lease_hooks.restart. */
void gateway_copies_restart(struct gateway_copies *c, unsigned node, int64_t epoch);

struct gateway_copies_figures {
	uint64_t copied, failed, restarted;
	unsigned held, wanted; /* by nodes that are connected */
};
struct gateway_copies_figures gateway_copies_figures(const struct gateway_copies *c);
