/* tunnel_node_internal.h - for the files of tunnel_node.h only. */
#pragma once
#include "cluster/tunnel.h"
#include "cluster/tunnel_dial.h"
#include "cluster/tunnel_node.h"
#include "http/http.h"
#include "http/upstream.h"

enum {
	CLIENT_TICK_MS = 50,
	CLIENT_HEALTHY_MS = 2000, /* a control connection that lasted so long is opened again ... */
	CLIENT_RETURN_MS = 10,    /* ... after this time */
	CLIENT_SENT = 32,         /* heartbeats whose time of sending is remembered */
};

struct client_gateway;

struct client_dial {
	struct tunnel_dial dial;
	struct client_gateway *gateway;
	struct client_dial *next, **link;
	int control;
};

struct client_link { /* a request connection */
	struct http_link link;
	struct client_gateway *gateway;
	struct client_link *next, **prev;
	int busy;
};

struct client_gateway {
	struct tunnel_client *client;
	unsigned index;
	uint32_t number; /* 0: not known */
	/* connecting */
	unsigned wanted; /* connections that were requested and have not come */
	uint64_t wanted_ms, retry_ms;
	uint64_t retry_at; /* 0: no connection is to be requested */
	unsigned links_wanted;
	struct client_dial *dials;
	int dialling_control;
	/* the control connection */
	struct upstream control;
	struct control_lines lines;
	unsigned open : 1, greeted : 1, full : 1;
	uint64_t seq, heartbeat_at, opened_ms;
	uint64_t sent_ms[CLIENT_SENT];
	uint64_t lists; /* a hash of the lists that were sent last; 0: none */
	/* request connections */
	struct client_link *links;
	unsigned nlinks;
};

struct tunnel_client {
	struct loop *loop;
	struct http_server *server;
	struct tunnel_client_hooks hooks;
	uint32_t number;
	char name[CONTROL_NAME], version[CONTROL_VERSION], machine[TUNNEL_MACHINE];
	struct ssl_ctx_st *tls;
	uint64_t epoch;
	struct timer tick;
	int stopped;
	struct tunnel_client_figures figures; /* those that only grow */
	unsigned ngateways;
	struct client_gateway gateways[];
};

/* tunnel_node.c */
void tunnel_client_retry_later(struct client_gateway *g);
void tunnel_client_open_links(struct client_gateway *g,
			      unsigned count); /* further request connections */

/* tunnel_node_control.c */
void tunnel_client_open_control(struct client_gateway *g, const struct upstream_link *take_link,
				uint32_t number);
void tunnel_client_close_control(struct client_gateway *g, const char *why, int is_error);
void tunnel_client_put(struct client_gateway *g, const struct buf *line);
void tunnel_client_heartbeat(struct client_gateway *g, uint64_t now);
