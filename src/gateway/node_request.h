/* node_request.h - a small request of the gateway itself to one node, with the whole answer in memory.
 * Owns: the connection for the time of the request, the answer until done() returns. */
#pragma once
#include "cluster/tunnel.h"
#include "http/upstream.h"

enum { NODE_REQUEST_BYTES = 8 << 20 }; /* a longer answer is an error of the node */

struct node_request { /* memory of the caller, zeroed; valid until done() or node_request_cancel() */
	/* Called once, from the loop. status 0: there is no answer, and why is the reason. The caller may
	 * free the memory in it. */
	void (*done)(struct node_request *x, int status, const char *body, size_t n,
		     const char *why);
	/* The rest is node_request.c's, but may be read. */
	struct tunnels *tunnels;
	struct loop *loop;
	unsigned node;
	struct tunnel_ask ask;
	struct upstream up;
	struct timer clock;
	struct buf head, answer;
	int status;
	int has_link;
	int is_active;
	char next_token[512]; /* of the answer's header x-next-token; "": none */
	char why[160];
};

/* target: path and query. identity: value of Atoll-Identity. */
void node_request_get(struct node_request *x, struct tunnels *t, struct loop *l, unsigned node,
		      const char *target, const char *identity, uint32_t timeout_ms);
void node_request_cancel(
	struct node_request *x); /* done() is not called; fine on a zeroed or finished one */
