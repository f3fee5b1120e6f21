/* box_link.h - connections from one box to another box of its team.
 * Owns:         each connection that is being opened.
 * Does not own: the links of a box: they are lines of its row, "link NAME ID" in row.network.
 *
 *   box A ── db:5432 ──► egress ── LINK{A, db, 5432} ──► server ── CONNECT 5432 ──► init of box B
 *                           ◄────── LINKED + the connection ──┘
 *
 * Egress relays the bytes and reports the connection, as for a host. It cannot enter a box; the server
 * can, and checks here that the link exists and that both boxes belong to one team. */
#pragma once
#include "wire/wire.h"
#include <jansson.h>
#include <stddef.h>

enum { BOX_LINKS = 16, BOX_LINK_NAME = 63 }; /* of a box; bytes of a name */

struct egress_client;

/* 1: a name that a link may have: one label of a host name. */
int box_link_valid(const char *name);
int box_link_is(const char *line);        /* 1: a line of a row is a link */
json_t *box_link_json(const char *lines); /* {"db": "ID"}; lines: of a row, or NULL */
int box_link_some(const char *lines);     /* 1: there is a link among them */
/* Opens the connection that egress requests, and sends it, or the reason why there is none. */
void box_link_open(struct egress_client *g, const struct wire_egress_link *f, size_t len);
