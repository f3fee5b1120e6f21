/* port_conn.h - a connection to a port of a box, opened from inside by its init.
 * Owns: the queue of connections of one box, and the retries while a server is starting.
 * Does not own: the descriptor, once done() has it.
 *
 *   queued ------> request to init -> connected
 *         ^              | refused: the port is not open yet
 *         +--- waits ----+ PORT_CONN_TRIES times
 *
 * A connection that a server keeps open after its answer waits here for the next request to the same
 * port, for PORT_IDLE_MS: less than the five seconds after which common servers close it.
 *
 * Init opens a few connections at the same time. So PORT_CONN_ASKING are requested, the others wait
 * in a queue, and a connection that has to be tried again goes to its end. */
#pragma once
#include "client/init_conn.h"

enum { PORT_CONN_ASKING = 8, PORT_CONN_MOST = 1024, PORT_CONN_TRIES = 6 };
enum { PORT_IDLE_MOST = 64, PORT_IDLE_ALL = 1024, PORT_IDLE_MS = 3000 };

struct box;
struct port_conn;

struct port_idle;
struct port_conns { /* of one box */
	struct port_conn *first, **end;
	unsigned n, asking;
	struct port_idle *idle; /* newest first */
	unsigned nidle;
};

struct port_conn {
	struct port_conn *next, **at; /* NULL at: finished */
	struct box *box;
	uint16_t port;
	enum { PORT_CONN_WAITS, PORT_CONN_ASKS, PORT_CONN_RESTS } state;
	unsigned tries;
	struct init_call ask;
	struct timer clock;
	/* take_fd: connected, non-blocking; or -1 with e: ERR_NOT_FOUND if the box has ended,
	 * ERR_SYS with ECONNREFUSED if no program listens. */
	void (*done)(struct port_conn *x, int take_fd, const struct err *e);
};

void port_conns_init(struct port_conns *all);
void port_conns_fail(struct box *b); /* the box has ended */
/* done() is called from the loop. -1: too many wait already; done() is not called. */
must_check int port_conn_open(struct port_conn *x, struct box *b, uint16_t port, struct err *e);
/* A connection to this port that waits for a request; -1: none. The server may be about to close it. */
int port_conn_take_idle(struct box *b, uint16_t port);
/* Keeps a connection whose last answer is complete, or closes it if there are enough. */
void port_conn_keep_idle(struct box *b, uint16_t port, int take_fd);
void port_conns_drop_idle(struct box *b);   /* the box is paused */
void port_conn_cancel(struct port_conn *x); /* fine on a finished one, or a zeroed one */
