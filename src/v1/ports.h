/* ports.h - /v1/boxes/{box}/ports: which ports of a box may be asked by anybody who knows the address,
 * and what that is.
 * Owns: the list in the box's row (row.door, "ports"). The traffic itself is the E2B door's.
 *
 * A port is closed until somebody who may change the box opens it: the program behind it has no other
 * guard than itself. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"

enum { PREVIEW_PORTS = 32, PREVIEW_URL = 340 };

int preview_is_open(const struct box *b, uint16_t port);
must_check int preview_open(struct box *b, uint16_t port, struct err *e);
/* "https://3000-<box>.<domain>:8443", as this client should find it; "": there is no name for it. */
void preview_url(const struct call *c, const char *box, uint16_t port, char out[PREVIEW_URL]);

void ports_list(struct call *c);
void ports_show(struct call *c);
void ports_open(struct call *c);
void ports_close(struct call *c);
