/* lease.h - the rules of docs/cluster.md, "Leases and node loss", without I/O: events and times in, actions out.
 * Owns: the times until which a node or gateway may act. Does not own: connections (cluster/tunnel.h), the engine (coordinator/coordinator.h), boxes.
 *
 * All times are milliseconds of the monotonic clock of this process. */
#pragma once
#include "cluster/view.h"

enum {
	LEASE_HEARTBEAT_MS = 500,
	LEASE_NODE_MS = 2500,    /* N: after a node sent the heartbeat that was acknowledged */
	LEASE_GATEWAY_MS = 4000, /* G: after a gateway began the renewal that was done */
	LEASE_RENEW_MS = 500,
	LEASE_MARGIN_MS = 150, /* clocks that run at different rates */
	LEASE_GRACE_MS = 2000, /* from "lost" to a restart elsewhere: init may act late */
	LEASE_FORGET_MS = 600000,
};

/* ---- a node ---- */

enum {
	LEASE_GATEWAYS = 64,
	LEASE_UNDER_WAY = 16
}; /* gateways of a node; heartbeats to each without answer */

struct node_lease_tunnel {
	int gateway; /* 0: not used */
	int greeted; /* with the epoch of the node */
	struct {
		uint64_t seq, sent_ms;
	} heartbeats[LEASE_UNDER_WAY];
	unsigned at;
};

struct node_lease {
	int64_t epoch; /* 0: none yet */
	uint64_t until_ms;
	int returning; /* a hello with a higher epoch came: superseded boxes exist, perhaps */
	struct node_lease_tunnel tunnels[LEASE_GATEWAYS];
};

void node_lease_init(struct node_lease *l, int64_t epoch); /* epoch: as stored before; 0: none */
/* A control connection opens (a new one replaces the old one), ends. */
void node_lease_opened(struct node_lease *l, int gateway);
void node_lease_closed(struct node_lease *l, int gateway);
/* A heartbeat is about to be sent: call it before the write. */
void node_lease_sent(struct node_lease *l, int gateway, uint64_t seq, uint64_t now_ms);
enum node_lease_greeting {
	NODE_GREETING_STALE, /* an older epoch than the node's: close the connection */
	NODE_GREETING_SAME,
	/* Rule 9: a higher epoch. There is no lease until node_lease_settled(): destroy superseded boxes and
	 * drop names that are not in the list first. */
	NODE_GREETING_RETURN,
};
enum node_lease_greeting node_lease_greeted(struct node_lease *l, int gateway, int64_t epoch);
void node_lease_settled(struct node_lease *l);
/* Rule 2. */
void node_lease_acked(struct node_lease *l, int gateway, uint64_t seq);
/* The same for a caller that knows when the heartbeat was sent. */
void node_lease_acked_at(struct node_lease *l, int gateway, uint64_t sent_ms);
/* Rule 8: time for which names and restartable boxes are this node's; 0: none. For the frame LEASE, and before
 * every use of a name. */
uint64_t node_lease_left_ms(const struct node_lease *l, uint64_t now_ms);

/* ---- a gateway ---- */

enum lease_action_kind {
	LEASE_NOTHING,
	LEASE_REGISTER, /* ask COORDINATOR_REGISTER; then gateway_lease_registered() */
	LEASE_RENEW,    /* ask COORDINATOR_RENEW (incarnation); then gateway_lease_renewed() */
	LEASE_TUNNEL_UP, /* ask COORDINATOR_SET_TUNNEL (node, serial); then gateway_lease_tunnel_set() */
	LEASE_TUNNEL_DOWN,  /* the same */
	LEASE_GREET,        /* rule 3: send the hello: node, epoch, and what the answer listed */
	LEASE_CLOSE,        /* close the control connection of node */
	LEASE_DECLARE_LOST, /* ask COORDINATOR_DECLARE_LOST (node, epoch, dead) */
	LEASE_RESTART,      /* move boxes with on_loss: restart of node, lost with this epoch */
	LEASE_FORGET,       /* ask COORDINATOR_FORGET_NODE (node, epoch) */
	LEASE_REPLACED,     /* another process has this gateway's number, or it was removed: stop */
};
struct lease_action {
	enum lease_action_kind kind;
	int node;
	int64_t epoch, serial, incarnation;
	const struct view_gateway *dead; /* valid until the next call */
	unsigned ndead;
	const char *why; /* LEASE_CLOSE */
};

enum lease_answer { LEASE_DONE, LEASE_UNKNOWN, LEASE_REFUSED, LEASE_NOT_FOUND };

struct gateway_lease;
/* forget_ms: cluster.forget_after. */
struct gateway_lease *gateway_lease_new(int number, uint64_t forget_ms);
void gateway_lease_free(struct gateway_lease *g);

/* The next thing to do; call it after every event until it returns LEASE_NOTHING. */
struct lease_action gateway_lease_next(struct gateway_lease *g);
/* Timers: call it at least every LEASE_HEARTBEAT_MS, and when gateway_lease_wake_ms() has passed. */
void gateway_lease_tick(struct gateway_lease *g, uint64_t now_ms);
uint64_t gateway_lease_wake_ms(const struct gateway_lease *g, uint64_t now_ms); /* from now */

void gateway_lease_registered(struct gateway_lease *g, uint64_t now_ms, enum lease_answer a,
			      int64_t incarnation);
/* v: NULL unless LEASE_DONE. REFUSED and NOT_FOUND end the lease. */
void gateway_lease_renewed(struct gateway_lease *g, uint64_t now_ms, enum lease_answer a,
			   const struct view *v);
void gateway_lease_connected(struct gateway_lease *g, uint64_t now_ms, int node);
void gateway_lease_disconnected(struct gateway_lease *g, uint64_t now_ms, int node);
/* 1: LEASE_GREET follows, with what the answer listed: keep it. */
int gateway_lease_tunnel_set(struct gateway_lease *g, uint64_t now_ms, int node, int64_t serial,
			     enum lease_answer a, int64_t epoch);
/* Rule 2, for each heartbeat. 1: it is acknowledged now. */
int gateway_lease_may_acknowledge(struct gateway_lease *g, uint64_t now_ms, int node);
/* DECLARE_LOST was answered; done: this gateway was first. */
void gateway_lease_declared(struct gateway_lease *g, uint64_t now_ms, int node, int done);
/* 1: this gateway's own lease is valid. */
int gateway_lease_valid(const struct gateway_lease *g, uint64_t now_ms);

#ifdef LEASE_MUTANTS
/* For tests that show what each rule is for: rules that are left out. */
enum { LEASE_RULE_2 = 1 << 2, LEASE_RULE_4 = 1 << 4, LEASE_RULE_5 = 1 << 5, LEASE_RULE_8 = 1 << 8 };
extern unsigned lease_without;
#endif
