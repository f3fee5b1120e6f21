/* ports.h - /v1/boxes/{box}/ports: which ports of a box are open to every client that has the
 * address, and that address.
 * Owns: the list in the row of the box (row.surface, "ports"). The E2B surface relays the traffic.
 *
 * A port is closed until a caller that may change the box opens it, because nothing but the program
 * itself protects an open port. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"

enum { PORTS_MOST = 32, PORTS_URL = 340 };

int ports_is_open(const struct box *b, uint16_t port);
must_check int ports_publish(struct box *b, uint16_t port, struct err *e);
/* "https://3000-<box>.<domain>:8443", as this client can reach it; "": no domain is configured. */
void ports_url(const struct call *c, const char *box, uint16_t port, char out[PORTS_URL]);

void ports_list(struct call *c);
void ports_show(struct call *c);
void ports_open(struct call *c);
void ports_close(struct call *c);
