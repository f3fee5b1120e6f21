/* internal.c - a request that the server makes itself, without a connection.
 * Handlers use its memory, and set headers of a reply that is not sent. */
#include "http/conn.h"

#include <stdio.h>
#include <stdlib.h>

struct http_req *http_internal_new(struct http_server *s, const char *method, const char *path)
{
	struct http_conn *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	c->fd = -1;
	c->cut = 1;    /* bytes that are sent are dropped */
	c->kicked = 1; /* conn_advance() is never called for it */
	c->arena.stock = &s->core->stock;
	c->req = (struct http_req){ .conn = c,
				    .server = s,
				    .method = method,
				    .target = path,
				    .path = path,
				    .query = "",
				    .always = "",
				    .began_ms = loop_now_ms() };
	snprintf(c->req.peer, sizeof(c->req.peer), "internal");
	return &c->req;
}

void http_internal_free(struct http_req *r)
{
	struct http_conn *c = r->conn;

	if (r->on_over)
		r->on_over(r);
	buf_fini(&r->body);
	arena_reset(&c->arena);
	free(c);
}
