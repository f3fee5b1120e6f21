/* port_conn.h - a connection to a port of a box, opened from inside by its init.
 * Owns: the order in which those of one box are opened, and the patience with servers that start.
 * Does not own: the descriptor, once done() has it.
 *
 *   waits its turn -> asks init -> connected
 *         ^              | refused: nobody listens there yet
 *         +--- rests ----+ INLET_TRIES times
 *
 * Init makes a few connections at once. So INLET_ASKING are asked for, the others stand in line, and one
 * that has to try again goes to its end. */
#pragma once
#include "client/init_conn.h"

enum { INLET_ASKING = 8, INLET_MOST = 1024, INLET_TRIES = 6 };

struct berth;
struct inlet;

struct inlets { /* of a berth */
	struct inlet *first, **end;
	unsigned n, asking;
};

struct inlet {
	struct inlet *next, **at; /* NULL at: it is over */
	struct berth *berth;
	uint16_t port;
	enum { INLET_WAITS, INLET_ASKS, INLET_RESTS } state;
	unsigned tries;
	struct init_call ask;
	struct timer clock;
	/* take_fd: connected, non-blocking; or -1, and e says why: ERR_NOT_FOUND when the box is no more,
	 * ERR_SYS with ECONNREFUSED when nobody listens. */
	void (*done)(struct inlet *x, int take_fd, const struct err *e);
};

void inlets_init(struct inlets *all);
void inlets_fail(struct berth *b); /* the box is no more */
/* done() is called from the loop, or never when it cannot even wait: -1. */
must_check int inlet_open(struct inlet *x, struct berth *b, uint16_t port, struct err *e);
void inlet_cancel(struct inlet *x); /* fine on one that is over, or zeroed */
