/* port_conn.h - a connection to a port of a box, opened from inside by its init.
 * Owns: the order in which those of one box are opened, and the patience with servers that start.
 * Does not own: the descriptor, once done() has it.
 *
 *   waits its turn -> asks init -> connected
 *         ^              | refused: nobody listens there yet
 *         +--- rests ----+ PORT_CONN_TRIES times
 *
 * Init makes a few connections at once. So PORT_CONN_ASKING are asked for, the others stand in line, and one
 * that has to try again goes to its end. */
#pragma once
#include "client/init_conn.h"

enum { PORT_CONN_ASKING = 8, PORT_CONN_MOST = 1024, PORT_CONN_TRIES = 6 };

struct box;
struct port_conn;

struct port_conns { /* of a berth */
	struct port_conn *first, **end;
	unsigned n, asking;
};

struct port_conn {
	struct port_conn *next, **at; /* NULL at: it is over */
	struct box *box;
	uint16_t port;
	enum { PORT_CONN_WAITS, PORT_CONN_ASKS, PORT_CONN_RESTS } state;
	unsigned tries;
	struct init_call ask;
	struct timer clock;
	/* take_fd: connected, non-blocking; or -1, and e says why: ERR_NOT_FOUND when the box is no more,
	 * ERR_SYS with ECONNREFUSED when nobody listens. */
	void (*done)(struct port_conn *x, int take_fd, const struct err *e);
};

void port_conns_init(struct port_conns *all);
void port_conns_fail(struct box *b); /* the box is no more */
/* done() is called from the loop, or never when it cannot even wait: -1. */
must_check int port_conn_open(struct port_conn *x, struct box *b, uint16_t port, struct err *e);
void port_conn_cancel(struct port_conn *x); /* fine on one that is over, or zeroed */
