/* server_cluster.h - the server's part of a cluster: on a gateway it accepts the tunnels of nodes, on a
 * node it keeps tunnels to the gateways (docs/cluster.md).
 * Owns: tunnels, their TLS contexts, the HTTP server of cluster.listen, the connection to the process
 *       that connects. */
#pragma once
#include "api/api.h"
#include "client/frame_conn.h"
#include "daemon/server.h"

struct server_cluster;

/* Reads keys and certificates; before the process is confined. *out is NULL without a role in a
 * cluster. A machine that has not joined is reported and serves without tunnels. */
must_check int server_cluster_load(struct server_cluster **out, const struct server_start *s,
				   struct err *e);
/* After v1_init(). All functions are allowed on NULL. */
must_check int server_cluster_init(struct server_cluster *x, struct api *a,
				   struct frame_conn *supervisor, struct err *e);
/* All boxes are known: connections are accepted and opened. */
must_check int server_cluster_start(struct server_cluster *x, struct err *e);
void server_cluster_connect(struct server_cluster *x, int take_fd); /* CLUSTER_CONNECT came */
void server_cluster_engines(struct server_cluster *x, int take_fd); /* CLUSTER_ENGINES came */
/* 1: a node with requests of its gateways. */
int server_cluster_is_used(const struct server_cluster *x);
void server_cluster_stop(struct server_cluster *x); /* the server drains */
void server_cluster_free(struct server_cluster *x); /* after http_server_fini() of the API */
