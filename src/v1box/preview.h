/* preview.h - access to the ports of a box for browsers and programs, and the answers that the
 * server gives in place of the box. docs/previews.md describes the rules.
 * Owns: nothing; ports.h stores the tokens. */
#pragma once
#include "v1box/ports.h"

#define PREVIEW_HEADER "x-atoll-preview-token"
#define PREVIEW_QUERY "atoll_preview_token"
#define PREVIEW_COOKIE "atoll_preview"

/* The box with this name whose port this request may open; NULL: none, or more than one. */
struct box *preview_named(struct call *c, const char *name, uint16_t port);
/* 1: the request may pass to the port. 0: it was answered. by_name: Host has the box's name. */
int preview_admit(struct call *c, const struct box *b, uint16_t port, int by_name);

/* ---- the request without its token, for the box ---- */
const char *preview_target(struct call *c); /* NULL: as the client sent it */
/* The value for the box; NULL: the box does not get the header. */
const char *preview_header(struct call *c, const struct http_header *h);

/* ---- answers (preview_page.c) ---- */
struct preview_page {
	int status;
	const char *code;    /* for programs */
	const char *message; /* one line */
	const char *why;     /* may be NULL, as all that follow */
	const char *command; /* to type */
	const char *output;  /* the last output of the server */
};
/* HTML if the client accepts it, else JSON. */
void preview_answer(struct call *c, const struct preview_page *p);
int preview_is_browser(const struct http_req *r);
void preview_html(struct call *c, const struct preview_page *p);
/* No program listens on the port. Reads which ports are open, and whether the server that Atoll
 * started there has exited; then answers. Uses c->state and c->drop. */
void preview_port_closed(struct call *c, struct box *b, uint16_t port);
/* The box cannot be connected to in this state. 1: that was answered. */
int preview_not_running(struct call *c, const struct box *b);
