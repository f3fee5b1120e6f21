/* tunnel_internal.h - for the files of tunnel.h only. */
#pragma once
#include "cluster/tunnel.h"
#include "http/upstream.h"

enum {
	TUNNEL_TICK_MS = 250,
	TUNNEL_OPENING_MS =
		3000,            /* a connection that was asked for and did not come in this time is
				   * asked for again */
	TUNNEL_SPARE = 64,       /* idle connections above this number are closed ... */
	TUNNEL_SPARE_MS = 10000, /* ... when they were not used for this long */
	TUNNEL_PROBE_S =
		10, /* a request connection without bytes is probed, and ends after three times as long */
	TUNNEL_EXPECTED = 1024, /* nodes that callers wait for while the gateway starts */
};

struct tunnel_idle {
	struct watch watch;
	struct upstream_link conn;
	struct tunnel_peer *node;
	struct tunnel_idle *next, **link;
	uint64_t since_ms;
};

struct tunnel_peer {
	struct tunnel_node node; /* first: tunnels_find() returns it */
	struct tunnels *tunnels;
	/* the control connection */
	struct upstream control;
	struct control_lines lines;
	unsigned open : 1;     /* it is */
	unsigned hello : 1;    /* and the node has sent its hello */
	unsigned full : 1;     /* it takes no further message now */
	unsigned removed : 1;  /* freed by the next tick */
	unsigned renewing : 1; /* its request for a certificate was not answered yet */
	unsigned expected : 1; /* callers wait for it; it has not connected yet */
	unsigned
		ended : 1; /* it has closed the connection itself: its daemon ends, and perhaps starts again */
	uint64_t full_ms, opened_ms;
	char machine[TUNNEL_MACHINE]; /* of the control connection; "": an older version */
	uint64_t last_seq;            /* of its heartbeats */
	uint64_t rows_kept;           /* to be sent when full ends; 0: none */
	unsigned rows_ahead;
	/* request connections */
	struct tunnel_idle *idle; /* the one used last is first */
	unsigned opening;
	uint64_t opening_ms;
	struct tunnel_ask *asks, **asks_end;
};

struct tunnels {
	struct loop *loop;
	/* TUNNEL_TICK_MS, TUNNEL_SILENCE_MS, TUNNEL_WAIT_MS, TUNNEL_WAIT_UP_MS; tests have shorter ones. */
	uint32_t tick_ms, silence_ms, wait_ms, wait_up_ms;
	uint64_t settled_ms; /* when TUNNEL_SETTLE_MS after the start have passed */
	uint32_t number;
	char version[CONTROL_VERSION];
	struct tunnel_hooks hooks;
	tunnels_renew *renew;
	void *renew_user;
	void *rows_user;
	struct tunnel_peer **peers; /* by number, ascending */
	unsigned count, room;
	struct timer tick, serve;
	int leaving;                    /* tunnels_leave() was called */
	struct tunnels_figures figures; /* those that only grow */
};

/* tunnel_gateway.c */
/* 0: one more connection of this node is accepted. */
must_check int tunnels_check(struct tunnels *t, uint32_t number, const char *machine, int control,
			     struct err *e);
struct tunnel_peer *tunnels_peer(struct tunnels *t, uint32_t number); /* NULL: none */
/* Of a node that may connect soon, because this gateway has just started. NULL: not expected. */
struct tunnel_peer *tunnels_expect(struct tunnels *t, uint32_t number);
void tunnel_set_state(struct tunnel_peer *p, enum tunnel_state state, uint64_t at_ms);

/* tunnel_control.c */
void tunnel_open_control(struct tunnel_peer *p, const char *peer, struct upstream_link take_link);
void tunnel_send(struct tunnel_peer *p, const struct buf *lines);
void tunnel_send_kept(struct tunnel_peer *p); /* the acknowledgement of rows, if it waits */
void tunnel_close_control(struct tunnel_peer *p, const char *why);
void tunnel_reject(struct tunnel_peer *p,
		   const char *why); /* closes it because of what the node did */

/* tunnel_links.c */
void tunnel_add_link(struct tunnel_peer *p, struct upstream_link take_link);
void tunnel_ask_for_links(struct tunnel_peer *p);
void tunnel_close_links(struct tunnel_peer *p);
void tunnel_tick_links(struct tunnel_peer *p, uint64_t now);
void tunnel_refuse_all(struct tunnel_peer *p);
void tunnels_serve_asks(struct timer *t);
