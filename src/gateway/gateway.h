/* gateway.h - the surface of a gateway: requests of clients go to the nodes that have their boxes.
 * Owns:         the requests in progress, the view of the nodes for placement.
 * Does not own: tunnels (cluster/tunnel.h); boxes, which exist on nodes only.
 *
 *   client -> key, role, rate -> target.h -> forward.c                                 a node by its number
 *                                         -> find.c -> forward.c                       a box by its name
 *                                         -> create.c -> place.h -> forward.c          a new box
 *                                         -> templates.c -> find.c -> forward.c        a template
 *                                         -> list.c, gather.c -> fanout.h              all nodes, merged */
#pragma once
#include "api/api.h"
#include "cluster/place.h"
#include "cluster/scale.h"
#include "gateway/leases.h"

struct gateway_bring;
struct gateway_copies;
struct gateway_moved;
struct gateway_names;
struct gateway_objects;
struct gateway_grants;
struct gateway_rows;
struct gateway_shares;
struct merged_figures;
struct settle_slot;

enum { GATEWAY_TEMPLATES = 256, GATEWAY_TEMPLATE = 200 };

struct gateway_template { /* templates.c: where it was found a moment ago */
	uint64_t until_ms;
	char team[STORE_NAME + 1], path[GATEWAY_TEMPLATE];
	unsigned node;
	int is_common; /* every node has it */
};

struct gateway_figures {
	uint64_t forwarded, repeated, created, refused, unreachable, lists, lists_incomplete;
};

struct gateway {
	struct api *api;
	struct tunnels *tunnels;
	struct gateway_leases *leases; /* NULL: this machine has not joined */
	struct gateway_names *names;   /* NULL: without a coordinator */
	struct gateway_moved *moved;   /* the same */
	struct gateway_copies *copies; /* the same */
	struct gateway_bring *bring;
	struct gateway_objects *objects; /* NULL: there is no object store */
	struct gateway_rows *rows;       /* NULL: without a coordinator */
	struct place *place;
	struct cluster_client *engines; /* for the directory; NULL: this machine has not joined */
	struct directory *directory;
	struct gateway_shares *shares; /* NULL: without a database */
	struct gateway_grants *grants; /* the same */
	struct merged_figures *merged;
	uint64_t directory_avoid_ms; /* until then lists are asked from the nodes */
	struct timer tick;
	uint64_t started_ms;
	struct scale scale;
	unsigned nodes_min;    /* cluster.nodes_min */
	uint64_t node_boot_ms; /* cluster.node_boot */
	struct gateway_figures figures;
	struct gateway_template templates[GATEWAY_TEMPLATES];
	struct settle_slot *settles; /* settle.c */
};

/* Sets api->gateway. Tunnels and leases live longer; names may be set before the first request. */
must_check int gateway_new(struct gateway **out, struct api *a, struct tunnels *t,
			   struct gateway_leases *leases, enum place_policy policy, struct err *e);
void gateway_free(struct gateway *g); /* allowed on NULL; after the last request */

extern const struct api_surface
	gateway_surface; /* the first one; takes nothing without api->gateway */
