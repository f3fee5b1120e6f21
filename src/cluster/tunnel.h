/* tunnel.h - the nodes that are connected to this gateway, and their connections.
 * Owns:         control connections, idle request connections, callers that wait for one.
 * Does not own: a connection that tunnels_take() returned, until tunnels_give(); the meaning of
 *               epochs, leases and rows: struct tunnel_hooks.
 *
 *   node ── GET /tunnel, Upgrade: atoll-tunnel/1 ──► tunnels_accept() ──► control connection (first)
 *                                                                   └──► idle request connection
 *   relay ── tunnels_take() ──► connection ── request, answer ── tunnels_give() ──► idle again
 *
 * A node is identified by the certificate of its connection and by nothing else. A connection that
 * sends what it must not is closed, with the reason in the log; the other connections continue. */
#pragma once
#include "cluster/control.h"
#include "loop/loop.h"

struct http_req;
struct upstream_link;
struct tunnels;

enum {
	TUNNEL_LINKS = 4096,   /* request connections of one node, idle and in use */
	TUNNEL_IDLE = 4,       /* idle ones that a node keeps without requests */
	TUNNEL_WAITING = 2048, /* callers that wait for a connection of one node */
	TUNNEL_WAIT_MS = 2000, /* and how long */
	TUNNEL_WAIT_UP_MS =
		5000, /* while the node is connected, or has closed its connection: further connections of a busy machine come late */
	TUNNEL_HEARTBEAT_MS = 500, /* nodes send one that often */
	TUNNEL_SILENCE_MS = 2500,  /* without heartbeat: the node is unreachable */
	TUNNEL_UNACKED_MS = 1500,  /* TCP_USER_TIMEOUT of control connections, on both sides */
	TUNNEL_SETTLE_MS =
		3000, /* after the start of a gateway: callers wait for nodes that are not
				    * connected yet, too */
	TUNNEL_MACHINE =
		33, /* bytes, with its NUL: differs between machines with one certificate */
	TUNNEL_ROWS_AHEAD = 8, /* messages with rows that were not acknowledged yet */
};

enum tunnel_state { TUNNEL_UP, TUNNEL_UNREACHABLE };
const char *tunnel_state_name(enum tunnel_state s); /* "up", "unreachable" */

struct tunnel_node {
	uint32_t number;
	char name[CONTROL_NAME];
	char version[CONTROL_VERSION];
	char peer[64]; /* address of its control connection */
	enum tunnel_state state;
	uint64_t since_ms;     /* of the state; loop_now_ms() */
	int64_t since_unix_ms; /* the same for people */
	uint64_t epoch;        /* of the last tunnels_greet() */
	int greeted;           /* heartbeats are acknowledged, if may_acknowledge() permits it */
	uint64_t heartbeat_ms; /* when the last one arrived; 0: none */
	struct control_figures figures;
	unsigned idle, busy, waiting; /* request connections; callers */
	uint64_t heartbeats, acknowledged, reconnects;
	/* The owner's of the hooks. */
	void *user;
};

struct tunnel_hooks { /* each may be NULL */
	void *user;
	/* The control connection is open and the node has sent its hello (epoch: the one it knows).
	 * The owner calls tunnels_greet() when rule 3 permits it. NULL: it is greeted with its own
	 * epoch. */
	void (*up)(void *user, struct tunnel_node *n, uint64_t epoch);
	/* 1: a heartbeat that just arrived is acknowledged (rule 2). NULL: always. */
	int (*may_acknowledge)(void *user, struct tunnel_node *n);
	/* The control connection has ended (rule 4 decides when that is stored). */
	void (*down)(void *user, struct tunnel_node *n, const char *why);
	/* A batch of rows, an array; last: the revision to acknowledge with tunnels_rows_kept().
	 * -1: the rows are invalid; the connection is closed. NULL: rows are an error. Also set by
	 * tunnels_set_rows(). */
	int (*rows)(void *user, struct tunnel_node *n, const struct json_t *rows, uint64_t last,
		    struct err *e);
	/* 0: the node was removed, its tunnels are refused. NULL: always 1. */
	int (*permitted)(void *user, uint32_t number);
};

/* version: of this program; number: of this gateway. hooks are copied. */
struct tunnels *tunnels_new(struct loop *l, uint32_t number, const char *version,
			    const struct tunnel_hooks *hooks);
/* Replaces the hooks, except `rows` after tunnels_set_rows(); before the first connection. */
void tunnels_set_hooks(struct tunnels *t, const struct tunnel_hooks *hooks);
/* Only the hook `rows`, with a user of its own. */
void tunnels_set_rows(struct tunnels *t, void *user,
		      int (*rows)(void *user, struct tunnel_node *n, const struct json_t *rows,
				  uint64_t last, struct err *e));
void tunnels_free(struct tunnels *t);
/* A connection of a node after its 101: control, or one for requests. Takes the connection. machine: as the node has sent
 * it, or "". -1: it is refused and closed. */
must_check int tunnels_connected(struct tunnels *t, uint32_t number, const char *machine,
				 const char *peer, int control, struct upstream_link take_link,
				 struct err *e);
/* Answers GET /tunnel, from on_head of the server of cluster.listen. Takes the connection over, or
 * replies with the reason. */
void tunnels_accept(struct tunnels *t, struct http_req *r);

/* ---- for the relay ---- */
enum tunnel_refusal {
	TUNNEL_UNKNOWN = 1, /* the node has not been connected since this gateway started */
	TUNNEL_AWAY,        /* it is unreachable since since_ms */
	TUNNEL_BUSY,        /* all its connections are in use and too many callers wait */
};
struct tunnel_ask { /* in memory of the caller, until done() or tunnels_cancel() */
	/* Called once if tunnels_take() returned 0: a connection, or NULL and the refusal below. It is
	 * called from the loop. */
	void (*done)(struct tunnel_ask *a, const struct upstream_link *take_link);
	void *user;
	/* Set when no connection is available. */
	enum tunnel_refusal refusal;
	int64_t since_unix_ms; /* TUNNEL_AWAY; else 0 */
	char why[160];         /* a sentence with the node and the reason */
	/* Of tunnels. */
	struct tunnel_ask *next, **link;
	struct tunnels *tunnels;
	uint32_t node;
	uint64_t since_ms;
};
/* 1: *out_link is the caller's. 0: a->done() follows. -1: refused, see a. */
int tunnels_take(struct tunnels *t, uint32_t node, struct tunnel_ask *a,
		 struct upstream_link *out_link);
void tunnels_cancel(struct tunnel_ask *a); /* done() is not called; fine on one that has ended */
/* Exactly once for each connection that was taken: it can carry another request, or fd is -1: it was
 * closed. */
void tunnels_give(struct tunnels *t, uint32_t node, struct upstream_link take_link);

/* ---- nodes ---- */
struct tunnel_node *tunnels_find(struct tunnels *t, uint32_t number); /* NULL: never connected */
/* By number, ascending; after NULL: the first. Nodes that are unreachable are included. */
struct tunnel_node *tunnels_next(struct tunnels *t, const struct tunnel_node *after);
void tunnels_forget(struct tunnels *t, uint32_t number); /* closes all its connections */

/* ---- for the owner of leases and rows ---- */
/* Rule 3: epoch and the keys that the node owns (an array, or NULL); from now on its heartbeats are
 * acknowledged. */
void tunnels_greet(struct tunnels *t, uint32_t number, uint64_t epoch, const struct json_t *owned);
/* Rule 5: closes the control connection, which needs a new hello. Requests continue. */
void tunnels_close(struct tunnels *t, uint32_t number, const char *why);
void tunnels_close_all(struct tunnels *t, const char *why);
/* This server drains: closes the control connections, so that nodes connect to the next server.
 * Requests continue, also new ones, on the request connections that are open; no others come. */
void tunnels_leave(struct tunnels *t);
void tunnels_rows_kept(struct tunnels *t, uint32_t number, uint64_t last);
/* -1: the node is unreachable. */
must_check int tunnels_order(struct tunnels *t, uint32_t number, const struct json_t *order,
			     struct err *e);

/* A node requests another certificate. `renew` answers with tunnels_send_certificate(), once; until then further requests
 * of the node are refused. number: of its verified certificate. */
typedef void tunnels_renew(void *user, uint32_t number, const char *request);
void tunnels_set_renew(struct tunnels *t, tunnels_renew *renew, void *user);
/* cert NULL: why there is none. A node that is no longer connected requests it again. */
void tunnels_send_certificate(struct tunnels *t, uint32_t number, const char *cert,
			      const char *why);

struct tunnels_figures {
	unsigned nodes, up, idle, busy, waiting;
	uint64_t accepted, rejected, closed_for_error, heartbeats, acknowledged;
};
struct tunnels_figures tunnels_figures(const struct tunnels *t);
