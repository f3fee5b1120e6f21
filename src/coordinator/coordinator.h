/* coordinator.h - what the gateways of a cluster agree on: which gateways and nodes are alive, which
 * node owns a name or a restarted box, which number a machine has.
 * Owns: its connections to the engine, requests without an answer.
 * Does not own: decisions. The rules of docs/cluster.md ("Leases and node loss") are in cluster/lease.h.
 *
 *   struct coordinator_request q = { .op = COORDINATOR_RENEW, .gateway = 3, .incarnation = 7 };
 *   coordinator_ask(c, &q, done, user);
 *
 * Every request is one transaction of the engine. done() is called once, on the loop, never from within
 * coordinator_ask(). An engine that does not answer yields ERR_SYS: the request has unknown effect, and may
 * still be carried out later. Requests can be repeated: each one is idempotent. */
#pragma once
#include "base/err.h"
#include "cluster/view.h"
#include <stdint.h>

struct loop;
struct coordinator;

enum coordinator_op {
	/* A gateway starts: gateway, address, version -> incarnation, larger than all before. */
	COORDINATOR_REGISTER,
	/* Rule 1: gateway, incarnation -> view. ERR_CONFLICT: another process has registered the same
	 * number; ERR_NOT_FOUND: the gateway was removed. */
	COORDINATOR_RENEW,
	/* Rules 3 and 4: gateway, node, up, serial -> epoch, names and superseded boxes of the node (up only).
	 * A request with a smaller serial than the stored one changes nothing and yields ERR_CONFLICT:
	 * a delayed "down" cannot undo a later "up". ERR_NOT_FOUND: there is no such node. */
	COORDINATOR_SET_TUNNEL,
	/* Rule 7: node, epoch, dead -> done 1, and the new epoch; 0: a gateway that is not dead has a tunnel,
	 * or the node has another epoch, or is lost already. */
	COORDINATOR_DECLARE_LOST,
	/* Names of a lost node become free: node, epoch (that of the loss) -> done; 0: it has returned. */
	COORDINATOR_FORGET_NODE,
	/* key, node, epoch, box -> done 1: it is the node's, with this box; 0: names[0] has the owner. box may be
	 * any text that identifies the claim until the box exists. ERR_CONFLICT: the node has another epoch,
	 * or is not up. */
	COORDINATOR_CLAIM_NAME,
	/* key, node, box, new_box -> done 1: the claim of box is now that of new_box. */
	COORDINATOR_CHANGE_NAME,
	/* key, node, box -> done 1: it is free. 0: it was not this claim's. */
	COORDINATOR_RELEASE_NAME,
	/* key -> names[0], if it is not free. */
	COORDINATOR_FIND_NAME,
	/* A box of a lost node restarts elsewhere, with its name if key.name is not NULL: box, from, from_epoch
	 * (that of the loss), node, epoch -> done 1; 0: from has returned, or another gateway was first.
	 * up 1: from is up, has from_epoch, and has stopped the box for good; nothing is superseded. */
	COORDINATOR_MOVE_BOX,
	/* box -> done 1: it was moved to the node `number`, when that had this epoch. */
	COORDINATOR_FIND_BOX,
	/* The node has destroyed its copy of a box that runs elsewhere: node, box. */
	COORDINATOR_SETTLE_BOX,
	/* A machine joins: role ("node", "gateway"), name, fingerprint of its key -> number. The same name and
	 * fingerprint get the same number. ERR_CONFLICT: the name belongs to another key. */
	COORDINATOR_ASSIGN_NUMBER,
	/* The machine exists in another engine, which has assigned its number: role, node (the number, also of a gateway),
	 * name, epoch -> done 1. One that exists already is not changed. */
	COORDINATOR_ADD_MACHINE,
	/* node -> done; its names are free, its tunnels are refused. */
	COORDINATOR_REMOVE_NODE,
	COORDINATOR_OPS
};
const char *coordinator_op_name(enum coordinator_op op);
int coordinator_op_of(const char *name); /* -1: none */

enum { COORDINATOR_TEXT = 256 }; /* bytes of a text, at most */

struct coordinator_key {
	const char *team;
	char kind; /* 'n': a name, 's': a session */
	const char *name;
	const char *template; /* of a session; "" */
};

struct coordinator_name {
	struct coordinator_key key;
	int node;
	int64_t epoch;
	const char *box;
};
struct coordinator_superseded { /* copies of this box that were started before this epoch */
	const char *box;
	int64_t epoch;
};

struct coordinator_request { /* plain data, borrowed for the call */
	enum coordinator_op op;
	int gateway, node, from;
	int64_t incarnation, serial, epoch, from_epoch;
	int up;
	const struct view_gateway *dead; /* as long as they have these renewals */
	unsigned ndead;
	struct coordinator_key key;
	const char *box, *new_box;
	const char *role, *name, *fingerprint, *address, *version;
};
/* Texts and numbers are within their limits; the first mistake otherwise. */
must_check int coordinator_request_check(const struct coordinator_request *q, struct err *e);

struct coordinator_answer { /* valid during done() */
	int done;
	int number;
	int64_t epoch, incarnation;
	/* clang-format off */
	struct view_gateway *gateways;      unsigned ngateways;
	struct view_tunnel *tunnels;        unsigned ntunnels;
	struct view_node *nodes;            unsigned nnodes;
	struct coordinator_name *names;            unsigned nnames;
	struct coordinator_superseded *superseded; unsigned nsuperseded;
	/* clang-format on */
};

/* e: NULL; or ERR_SYS (unknown), or another kind (refused); then a is NULL. */
typedef void coordinator_done(void *user, const struct coordinator_answer *a, const struct err *e);

void coordinator_ask(struct coordinator *c, const struct coordinator_request *q,
		     coordinator_done *done, void *user);
/* Why the engine does not answer; "" if it does. */
const char *coordinator_trouble(const struct coordinator *c);
void coordinator_free(
	struct coordinator *c); /* done() is not called; allowed on NULL, not from done() */

/* ---- drivers ---- */

struct postgres;
/* The connection is borrowed and lives longer; it must have been made with coordinator/schema.h. */
must_check int coordinator_postgres_new(struct coordinator **out, struct loop *l,
					struct postgres *p, struct err *e);

struct etcd_conf; /* coordinator/etcd.h */
must_check int coordinator_etcd_new(struct coordinator **out, struct loop *l,
				    const struct etcd_conf *conf, struct err *e);

/* etcd decides; numbers and members are in PostgreSQL, and so are the states of nodes for lists. */
must_check int coordinator_mixed_new(struct coordinator **out, struct loop *l, struct postgres *db,
				     const struct etcd_conf *conf, struct err *e);

/* With the addresses of etcd as above, without ("") PostgreSQL alone. */
must_check int coordinator_engine_new(struct coordinator **out, struct loop *l, struct postgres *db,
				      const char *etcd, struct err *e);

struct cluster_client; /* coordinator/cluster_client.h: the engine of the cluster process; borrowed */
must_check int coordinator_process_new(struct coordinator **out, struct cluster_client *client,
				       struct err *e);

/* For drivers: the first member of theirs. */
struct coordinator_driver {
	void (*ask)(struct coordinator *c, const struct coordinator_request *q,
		    coordinator_done *done, void *user);
	const char *(*trouble)(const struct coordinator *c);
	void (*free)(struct coordinator *c);
};
struct coordinator {
	const struct coordinator_driver *driver;
};
