/* detach.c - takes a TLS connection out of the server, for another protocol. */
#include "http/conn.h"
#include "http/upstream_link.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <openssl/ssl.h>

struct ssl_st *http_tls(const struct http_req *r)
{
	return r->conn && r->conn->tls ? bufferevent_openssl_get_ssl(r->conn->bev) : NULL;
}

int http_detach(struct http_req *r, struct upstream_link *out, struct err *e)
{
	struct http_conn *c = r->conn;

	if (!c || !c->tls || c->state != CONN_BUSY || c->reply != REPLY_NONE || !c->body_done)
		return err_set(e, ERR_INVALID,
			       "only a TLS connection can be taken over, after a request without "
			       "body and before its reply");
	if (evbuffer_get_length(conn_input(c)) > 0 || conn_waiting(c) > 0)
		return err_set(e, ERR_INVALID, "bytes came before the answer");
	bufferevent_disable(c->bev, EV_READ | EV_WRITE);
	c->detached = 1;
	c->eof = 1; /* reading does not start again */
	c->reading = 0;
	*out = (struct upstream_link){ .fd = c->fd, .tls = http_tls(r) };
	upstream_link_init(out);
	conn_cut(c, 0);
	return 0;
}
