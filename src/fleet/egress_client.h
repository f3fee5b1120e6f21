/* egress_client.h - the front's end of the way out: which boxes have one, and what went through it.
 * Owns:         the connection to egress, what each berth remembers of its connections.
 * Does not own: the listening sockets: egress holds them, and goes on when this front does not.
 *
 *   box's init ── LISTEN ──► a socket inside ──► gate ── WAY_OPEN + hosts ──► egress
 *
 * What is remembered is in memory: the last GATE_RECORDS connections of a box and sums over all of
 * them. A new front has the sums of bytes from egress, and none of the records. */
#pragma once
#include "client/init_conn.h"
#include <jansson.h>

struct berth;
struct fleet;

enum { GATE_PORT = 3128, GATE_RECORDS = 64 };

struct gate {
	struct fleet *fleet;
	struct frame_conn post;
	struct timer again;
	json_t *held;  /* by box: [bytes in, bytes out], of those that egress has had before us */
	int told;      /* it has said which */
	int unsure;    /* somebody else has opened a way meanwhile, it seems */
	uint32_t refs; /* of what was asked of it */
	void (*need)(struct gate *g); /* bring one: gate_connect(). NULL: there is no way out here */
	void *user;
};

struct gate_way { /* of a berth */
	struct init_call ask;
	int open;
	unsigned tries;
	uint32_t ref;  /* of its WAY_OPEN */
	char why[120]; /* it could not be opened */
	uint64_t bytes_in, bytes_out, connections, refused;
	json_t *records; /* array, oldest first */
};

void gate_init(struct gate *g, struct fleet *f);
void gate_begin(struct gate *g); /* need is set */
void gate_connect(struct gate *g, int take_fd);
/* Closes what egress holds of boxes that are no more, once that is certain. */
void gate_sweep(struct gate *g);
void gate_fini(struct gate *g);

int gate_wanted(const struct berth *b); /* does this box have hosts to reach? */
void gate_open(struct berth *b);        /* if it should have a way out and has none */
void gate_change(struct berth *b);      /* its hosts are others now */
void gate_close(struct berth *b);       /* the box is no more */
void gate_drop(struct berth *b);        /* the memory only */
json_t *gate_json(const struct berth *b);
/* Its connections that began since then. */
json_t *gate_since(const struct berth *b, int64_t since_ns);
