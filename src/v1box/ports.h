/* ports.h - /v1/boxes/{box}/ports: the ports of a box, the programs that listen there, and their
 * previews.
 * Owns: in the row of the box (row.surface) "ports", the public ones, and "previews", the tokens of
 * the private ones. preview.h checks the tokens; the E2B surface relays the traffic.
 *
 * A port is closed until a caller that may change the box opens it. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"

enum { PORTS_MOST = 32, PORTS_URL = 340, PORTS_TOKEN = 40, PORTS_LINK = PORTS_URL + 80 };

/* Clients that may open a port as a preview: none, those with its token, all. */
enum ports_access { PORTS_CLOSED, PORTS_PRIVATE, PORTS_PUBLIC };
/* out_token: of a private port; else "". */
enum ports_access ports_access(const struct box *b, uint16_t port, char out_token[PORTS_TOKEN + 1]);
int ports_is_native(const struct box *b); /* 0: an E2B sandbox, or it installs packages */
/* Opens a port; a private one keeps the token that it has. */
must_check int ports_publish(struct box *b, uint16_t port, int to_public, struct err *e);
/* The exec that Atoll started as the server of this port (POST /api/sandbox). */
must_check int ports_set_server(struct box *b, uint16_t port, const char *exec, struct err *e);
int ports_server(const struct box *b, uint16_t port, char out_exec[ID_MAX + 1]); /* 0: none */
/* "https://3000-<box>.<domain>:8443", as this client can reach it; "": no domain is configured. */
void ports_url(const struct call *c, const char *box, uint16_t port, char out[PORTS_URL]);
/* The same for a browser: of a private port, with its token. */
void ports_link(const struct call *c, const struct box *b, uint16_t port, char out[PORTS_LINK]);
int ports_is_secure(const struct http_req *r); /* the client uses TLS, to this server or to a proxy
						* on this machine */
int ports_is_local(const char *host); /* a loopback address, localhost, or a name below it */

/* The port that the path names; 0: not a port, and that was answered. */
uint16_t ports_param(struct call *c);
extern const struct field ports_open_fields[], ports_show_query[];
void ports_list(struct call *c);
void ports_show(struct call *c);
void ports_open(struct call *c);
void ports_close(struct call *c);
