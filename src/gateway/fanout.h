/* fanout.h - the same request to every node that is connected, at the same time.
 * Owns: the requests and their answers, until fanout_free(). */
#pragma once
#include "gateway/node_request.h"
#include <jansson.h>

enum { FANOUT_MS = 1000 }; /* for a node to answer */

struct fanout_answer {
	struct node_request request;
	struct fanout *all;
	char name[CONTROL_NAME]; /* of the node */
	int status;              /* 0: it did not answer */
	json_t *doc;             /* NULL: none, or not JSON */
};

struct fanout {
	/* Called once, from the loop, when every node has answered or is late. */
	void (*done)(struct fanout *f);
	void *user;
	const char *method, *headers; /* of the requests, as in node_request.h; NULL: GET, none */
	const char *body; /* JSON of every request; NULL: none. Until fanout_begin() returns */
	size_t nbody;
	uint32_t timeout_ms; /* 0: FANOUT_MS */
	unsigned n, waiting;
	struct timer none; /* when no node is connected */
	struct fanout_answer *v;
};

/* Makes the path and query for one node; NULL: the node is not asked. The text is used at once. */
typedef const char *fanout_target(void *user, unsigned node);
/* Includes nodes that are unreachable: their status is 0. */
void fanout_begin(struct fanout *f, struct tunnels *t, struct loop *l, fanout_target *target,
		  const char *identity);
void fanout_free(struct fanout *f); /* fine on a zeroed one */
