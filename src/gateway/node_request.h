/* node_request.h - a small request of the gateway itself to one node, with the whole answer in memory.
 * Owns: the connection for the time of the request, the answer until done() returns. */
#pragma once
#include "cluster/tunnel.h"
#include "http/upstream.h"
#include <jansson.h>

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
	struct buf head, body, answer;
	int status;
	int has_link;
	int is_active;
	char next_token[512]; /* of the answer's header x-next-token; "": none */
	char why[160];
};

struct node_request_what {
	const char *method;   /* NULL: GET */
	const char *target;   /* path and query */
	const char *identity; /* value of Atoll-Identity; "": none */
	const char *headers;  /* further lines, each with its end; NULL: none */
	const char *body;     /* JSON; NULL: none. Copied */
	size_t n;
};
void node_request_send(struct node_request *x, struct tunnels *t, struct loop *l, unsigned node,
		       const struct node_request_what *w, uint32_t timeout_ms);
void node_request_cancel(
	struct node_request *x); /* done() is not called; fine on a zeroed or finished one */
