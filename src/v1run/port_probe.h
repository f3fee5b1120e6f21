/* port_probe.h - asks a port of a box for / until a program answers with an HTTP status. Some servers listen
 * before they can answer: a framework compiles the page at its first request.
 * Owns: the connections to the port, one at a time. */
#pragma once
#include "fleet/fleet.h"
#include "fleet/port_conn.h"

struct port_probe {
	struct fleet *fleet;
	char box[ID_MAX + 1];
	uint16_t port;
	/* The port has answered; the box exists. The probe has ended. */
	void (*answered)(struct port_probe *p, struct box *b);
	struct port_conn port_conn;
	struct watch answer;
	int fd; /* -1: not connected */
	struct timer again;
};

/* Begins from the loop; answered() is never called before this returns. Without an answer it continues
 * until it is stopped. */
void port_probe_start(struct port_probe *p, struct fleet *f, const char *box, uint16_t port,
		      void (*answered)(struct port_probe *p, struct box *b));
void port_probe_stop(struct port_probe *p); /* fine on one that has ended */
