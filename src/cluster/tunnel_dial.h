/* tunnel_dial.h - one connected socket of a node becomes a tunnel connection: TLS handshake, GET /tunnel,
 * 101.
 * Owns: socket and TLS session, until done(). */
#pragma once
#include "http/upstream_link.h"
#include "loop/loop.h"
#include "base/buf.h"

struct ssl_ctx_st;

struct tunnel_dial {
	/* Called once, from the loop: the connection after its 101, or NULL and the reason. The struct is
	 * free then. */
	void (*done)(struct tunnel_dial *d, const struct upstream_link *take_link,
		     uint32_t gateway_number, const char *why);
	/* Of tunnel_dial.c. */
	struct watch watch;
	struct timer clock;
	struct upstream_link conn;
	struct buf request, answer;
	size_t sent;
	uint32_t number;
	int shaken;
};
/* control 1: the control connection; 0: one for requests. */
void tunnel_dial_start(struct tunnel_dial *d, struct loop *l, int take_fd, struct ssl_ctx_st *tls,
		       const char *version, const char *machine, int control);
void tunnel_dial_stop(struct tunnel_dial *d); /* done() is not called */
