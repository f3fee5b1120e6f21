/* leases.h - the lease of this gateway and the states of all nodes: cluster/lease.h driven with the coordinator and the
 * tunnels. A node that `atoll node rm` has removed loses its connections and gets no new ones, although its certificate
 * is still valid.
 * Owns:         the registration of this gateway, its lease, the last list of nodes.
 * Does not own: the coordinator, the tunnels; what follows from a loss (struct gateway_lease_hooks). */
#pragma once
#include "cluster/tunnel.h"
#include "cluster/view.h"
#include "coordinator/coordinator.h"

struct gateway_leases;

enum node_state {
	NODE_UP,          /* connected to this gateway, or to another one */
	NODE_UNREACHABLE, /* at no gateway, as far as known; it may still run its boxes */
	NODE_LOST,        /* by rule 7: names and restartable boxes are no longer its own */
	NODE_GONE,        /* after cluster.forget_after: its boxes are reported lost */
	NODE_STATES
};
const char *node_state_name(enum node_state s); /* "up", "unreachable", "lost", "gone" */

struct node_status {
	unsigned number;
	char name[VIEW_NAME];
	enum node_state state;
	int64_t since_unix_ms; /* of the state; as this gateway has seen it */
	uint64_t since_ms;     /* the same, loop_now_ms() */
	int64_t epoch;         /* in the last list of the coordinator; 0: not in it */
	int64_t known_epoch;   /* that the node sent in its last hello: it has settled all before */
	int seen_elsewhere;    /* while a list is read */
	int is_elsewhere;      /* other gateways have a tunnel to it, by the last list */
	int is_listed;         /* in the last list */
};

struct gateway_lease_hooks { /* each may be NULL */
	void *user;
	/* was_ms: how long the node had the state before. */
	void (*changed)(void *user, const struct node_status *now, enum node_state was,
			uint64_t was_ms);
	/* Rule 8: boxes with on_loss of a node, lost with this epoch, can start elsewhere. Repeated until the node
	 * returns or is forgotten. */
	void (*restart)(void *user, unsigned node, int64_t epoch);
};

struct gateway_leases_conf {
	unsigned number;               /* of this gateway */
	const char *address, *version; /* borrowed */
	uint64_t forget_ms;
};

/* Sets all hooks of t but `rows`. The coordinator and the tunnels live longer. */
struct gateway_leases *gateway_leases_new(struct loop *l, struct coordinator *c, struct tunnels *t,
					  const struct gateway_leases_conf *conf);
void gateway_leases_set_hooks(struct gateway_leases *g, const struct gateway_lease_hooks *hooks);
/* No further requests: another server takes over. Its last list stays in force. Allowed on NULL. */
void gateway_leases_stop(struct gateway_leases *g);
void gateway_leases_free(struct gateway_leases *g); /* allowed on NULL; after coordinator_free() */

/* NULL: the cluster has no such node, as far as known. */
const struct node_status *gateway_leases_find(const struct gateway_leases *g, unsigned number);
/* By number, ascending; after NULL: the first. */
const struct node_status *gateway_leases_next(const struct gateway_leases *g,
					      const struct node_status *after);
/* 1: a list of the coordinator has come since the start. */
int gateway_leases_has_list(const struct gateway_leases *g);
int gateway_leases_is_valid(const struct gateway_leases *g); /* the lease of this gateway */
/* Why the coordinator does not answer; "": it does. */
const char *gateway_leases_trouble(const struct gateway_leases *g);
uint64_t gateway_leases_lost(
	const struct gateway_leases *g); /* nodes that this gateway declared lost */
