/* tunnel.c - see tunnel.h. */
#include "v1box/tunnel.h"
#include "http/relay.h"
#include "fleet/port_conn.h"
#include "v1box/ports.h"

#include <errno.h>
#include <stdio.h>

struct tunnel {
	struct call *call;
	struct port_conn port_conn;
	struct relay *relay; /* NULL: not connected yet */
	uint16_t port;
};

static struct relay *tunnel_relay(const struct http_req *r)
{
	return ((struct tunnel *)((struct call *)r->user)->state)->relay;
}

static void tunnel_on_body(struct http_req *r, const char *bytes, size_t n)
{
	if (tunnel_relay(r)) /* NULL: the server drains and has dropped it */
		relay_body(tunnel_relay(r), bytes, n);
}

static void tunnel_on_body_end(struct http_req *r)
{
	if (tunnel_relay(r))
		relay_body_end(tunnel_relay(r));
}

static void tunnel_on_drain(struct http_req *r)
{
	if (tunnel_relay(r))
		relay_drain(tunnel_relay(r));
}

static void tunnel_drop(struct call *c)
{
	struct tunnel *t = c->state;

	port_conn_cancel(&t->port_conn);
	relay_free(t->relay);
	t->relay = NULL;
}

static void tunnel_fail(struct tunnel *t, const struct err *e)
{
	char message[80];

	snprintf(message, sizeof(message), "no program listens on port %u", t->port);
	if (e->sys == ECONNREFUSED)
		call_error(
			t->call, 502, "port_closed", message, e->msg,
			"start the server; wait for it: GET /v1/boxes/{box}/ports/{port}?wait=10s");
	else
		call_error(t->call, e->kind == ERR_LIMIT ? 503 : 502, "no_connection",
			   "the port cannot be connected to", e->msg, NULL);
}

static void tunnel_connected(struct port_conn *x, int take_fd, const struct err *e)
{
	struct tunnel *t = loop_owner(x, struct tunnel, port_conn);
	struct http_req *r = t->call->req;

	if (take_fd < 0) {
		tunnel_fail(t, e);
		return;
	}
	r->on_body = tunnel_on_body;
	r->on_body_end = tunnel_on_body_end;
	r->on_drain = tunnel_on_drain;
	http_set(r, "Upgrade", "tcp");
	http_switch(r);
	t->call->endless = 1;
	t->relay = relay_new_raw(r, t->call->api->loop, upstream_link_plain(take_fd));
}

void tunnel_connect(struct call *c)
{
	struct box *b = call_box(c, 0);
	struct tunnel *t = b ? call_alloc(c, sizeof(*t)) : NULL;
	struct err e;

	if (!b)
		return;
	*t = (struct tunnel){ .call = c, .port_conn = { .done = tunnel_connected } };
	t->port = ports_param(c);
	if (!t->port)
		return;
	if (!c->req->tunnel) {
		http_set(c->req, "Upgrade", "tcp");
		call_error(
			c, 426, "upgrade_needed", "this address carries bytes, not documents", NULL,
			"atoll forward BOX LOCAL:PORT; or send Connection: Upgrade, Upgrade: tcp");
		return;
	}
	c->state = t;
	c->drop = tunnel_drop;
	if (port_conn_open(&t->port_conn, b, t->port, &e) < 0)
		tunnel_fail(t, &e);
}
