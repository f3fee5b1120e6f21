/* ports.h - /v1/boxes/{box}/ports: which ports of a box may be asked by anybody who knows the address,
 * and what that is.
 * Owns: the list in the box's row (row.door, "ports"). The traffic itself is the E2B door's.
 *
 * A port is closed until somebody who may change the box opens it: the program behind it has no other
 * guard than itself. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"

enum { PORTS_MOST = 32, PORTS_URL = 340 };

int ports_is_open(const struct box *b, uint16_t port);
must_check int ports_publish(struct box *b, uint16_t port, struct err *e);
/* "https://3000-<box>.<domain>:8443", as this client should find it; "": there is no name for it. */
void ports_url(const struct call *c, const char *box, uint16_t port, char out[PORTS_URL]);

void ports_list(struct call *c);
void ports_show(struct call *c);
void ports_open(struct call *c);
void ports_close(struct call *c);
