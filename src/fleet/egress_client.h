/* egress_client.h - the front's end of the way out: which boxes have one, and what went through it.
 * Owns:         the connection to egress, what each berth remembers of its connections.
 * Does not own: the listening sockets: egress holds them, and goes on when this front does not.
 *
 *   box's init ── LISTEN ──► a socket inside ──► gate ── WAY_OPEN + hosts ──► egress
 *
 * What is remembered is in memory: the last EGRESS_CLIENT_RECORDS connections of a box and sums over all of
 * them. A new front has the sums of bytes from egress, and none of the records. */
#pragma once
#include "client/init_conn.h"
#include <jansson.h>

struct box;
struct fleet;

enum { EGRESS_CLIENT_PORT = 3128, EGRESS_CLIENT_RECORDS = 64 };

struct egress_client {
	/* clang-format off */
	struct fleet *fleet;
	struct frame_conn post;
	struct timer again;
	json_t *held;  /* by box: [bytes in, bytes out], of those that egress has had before us */
	int told;      /* it has said which */
	int unsure;    /* somebody else has opened a way meanwhile, it seems */
	uint32_t refs; /* of what was asked of it */
	void (*need)(struct egress_client *g); /* bring one: egress_client_connect(). NULL: there is no way out here */
	void *user;
	/* clang-format on */
};

struct egress_client_link { /* of a berth */
	struct init_call ask;
	int open;
	unsigned tries;
	uint32_t ref;  /* of its WAY_OPEN */
	char why[120]; /* it could not be opened */
	uint64_t bytes_in, bytes_out, connections, refused;
	json_t *records; /* array, oldest first */
};

void egress_client_init(struct egress_client *g, struct fleet *f);
void egress_client_begin(struct egress_client *g); /* need is set */
void egress_client_connect(struct egress_client *g, int take_fd);
/* Closes what egress holds of boxes that are no more, once that is certain. */
void egress_client_sweep(struct egress_client *g);
void egress_client_fini(struct egress_client *g);

int egress_client_wanted(const struct box *b); /* does this box have hosts to reach? */
void egress_client_open(struct box *b);        /* if it should have a way out and has none */
void egress_client_change(struct box *b);      /* its hosts are others now */
void egress_client_close(struct box *b);       /* the box is no more */
void egress_client_drop(struct box *b);        /* the memory only */
json_t *egress_client_json(const struct box *b);
/* Its connections that began since then. */
json_t *egress_client_since(const struct box *b, int64_t since_ns);
