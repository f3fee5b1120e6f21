/* connector.h - the process of a node that connects sockets to gateways for the server, which cannot.
 * Owns: connections to servers, sockets while they connect.
 *
 *   server ── CLUSTER_DIAL, flags: gateway ──►
 *         ◄── CLUSTER_DIAL + fd: connected; or without fd, tail: why not
 *
 * It connects only to the gateways of the settings and to cluster.objects (CONNECTOR_OBJECTS instead of a gateway), and sends and reads no byte on those sockets. */
#pragma once
#include "base/err.h"

enum {
	CONNECTOR_TIME_MS = 5000,   /* for the name and all its addresses */
	CONNECTOR_OBJECTS = 0xffff, /* instead of the position of a gateway */
};

struct connector_conf {              /* borrowed for the life of the process */
	const char *const *gateways; /* HOST:PORT, NULL-terminated */
	const char *objects;         /* URL of the bucket; NULL: none */
	const char *const *dns;      /* servers, NULL-terminated; none: the host's */
};

/* Runs the process until `supervisor` is closed: CLUSTER_CONNECT with a descriptor on it is a
 * connection of a server. walls() is called when no more files must be opened. Returns the exit
 * status. */
int connector_main(const struct connector_conf *conf, int supervisor,
		   int (*walls)(void *ctx, struct err *e), void *ctx);
