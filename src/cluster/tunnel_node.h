/* tunnel_node.h - the tunnels of a node: to every gateway a control connection, and connections on which
 * the gateway sends requests.
 * Owns:         the control connections, connections during their TLS handshake.
 * Does not own: how a socket is connected (the server process cannot: hooks.connect); request
 *               connections, which the HTTP server serves.
 *
 *   hooks.connect() ─► tunnel_client_connected(fd) ─► TLS, GET /tunnel, 101 ─► control connection
 *                                                                         └─► http_serve_link()
 *
 * A gateway asks for request connections ("open"); a control connection that ends is opened again after
 * 0.2 to 1 s. */
#pragma once
#include "cluster/control.h"
#include "loop/loop.h"

struct http_server;
struct ssl_ctx_st;
struct tunnel_client;

enum {
	TUNNEL_DIAL_MS = 5000,     /* for the handshake and the answer of the gateway */
	TUNNEL_CONNECT_MS = 15000, /* a connection that was requested and did not come by then is
				     * requested again */
	TUNNEL_RETRY_MS = 200,     /* then twice as long each time ... */
	TUNNEL_RETRY_MOST_MS =
		1000, /* less than callers wait for the nodes of a gateway that has just started */
};

struct tunnel_client_hooks { /* connect and figures are needed; others may be NULL */
	void *user;
	/* A socket connected to this gateway is needed (its position in cluster.gateways):
	 * tunnel_client_connected() or tunnel_client_failed() follows. */
	void (*connect)(void *user, unsigned gateway);
	/* The state of this node, for a heartbeat; all but seq. The lists become the caller's. */
	void (*figures)(void *user, struct control_figures *out);
	/* Rule 9: the hello of a gateway. number: of the gateway; owned: an array of keys. */
	void (*greeted)(void *user, unsigned gateway, uint32_t number, uint64_t epoch,
			const struct json_t *owned);
	/* Rule 2: a heartbeat that was sent at sent_ms (loop_now_ms()) is acknowledged. */
	void (*acknowledged)(void *user, unsigned gateway, uint64_t sent_ms);
	void (*rows_kept)(void *user, unsigned gateway, uint64_t last);
	/* The answer to tunnel_client_send_renew(). cert NULL: why there is none. */
	void (*certificate)(void *user, const char *cert, const char *why);
	void (*ordered)(void *user, unsigned gateway, const struct json_t *order);
	void (*closed)(void *user, unsigned gateway); /* the control connection, after greeted() */
};

struct tunnel_client_conf {
	uint32_t number; /* of this node */
	const char *name, *version;
	const char *
		machine; /* of this state folder: a copy of it elsewhere is refused. NULL: not known */
	unsigned gateways;
	struct ssl_ctx_st *tls; /* of cluster_tls_client(); borrowed */
};

/* The connections are requested at once. The texts are copied. */
struct tunnel_client *tunnel_client_new(struct loop *l, struct http_server *server,
					const struct tunnel_client_conf *conf,
					const struct tunnel_client_hooks *hooks);
void tunnel_client_connected(struct tunnel_client *c, unsigned gateway, int take_fd);
void tunnel_client_failed(struct tunnel_client *c, unsigned gateway, const char *why);
/* The process that connects has ended: sockets that were requested will not come. */
void tunnel_client_restart_dials(struct tunnel_client *c);
/* A newer certificate: for connections from now on. Borrowed. */
void tunnel_client_set_tls(struct tunnel_client *c, struct ssl_ctx_st *tls);
/* Rule 9: the epoch that hellos of this node contain from now on. */
void tunnel_client_set_epoch(struct tunnel_client *c, uint64_t epoch);
/* 1: was sent (at most TUNNEL_ROWS_AHEAD messages before an answer, which the caller counts). 0: not
 * now. -1: the message would be longer than CONTROL_LINE_NODE; send fewer rows. */
int tunnel_client_send_rows(struct tunnel_client *c, unsigned gateway, uint64_t last,
			    const struct json_t *rows);
/* Closes the control connection to this gateway; another one is opened later. */
void tunnel_client_close(struct tunnel_client *c, unsigned gateway, const char *why);
/* A request for another certificate, to one gateway. 1: was sent; 0: no gateway is connected. */
int tunnel_client_send_renew(struct tunnel_client *c, const char *request);
/* Closes the control connections and opens no others: the server drains. Requests that are in
 * progress continue. */
void tunnel_client_stop(struct tunnel_client *c);
/* After http_server_fini(). */
void tunnel_client_free(struct tunnel_client *c);

struct tunnel_client_figures {
	unsigned gateways, connected, links, busy;
	uint64_t connects, failures, heartbeats, acknowledged;
};
struct tunnel_client_figures tunnel_client_figures(const struct tunnel_client *c);
