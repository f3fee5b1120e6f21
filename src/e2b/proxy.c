/* proxy.c - any other port of a box: forwards the request to the server that listens there, and
 * its answer to the client.
 *
 *   head -> a connection, opened from inside (fleet/port_conn.h) -> request and answer (http/relay.h)
 *
 * A server in a box is not trusted, by Atoll and maybe not by the client: keys and tokens of
 * Atoll are not forwarded. */
#include "base/log.h"
#include "e2b/e2b.h"
#include "fleet/port_conn.h"
#include "http/relay.h"
#include "v1box/preview.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define NOT_FOUND "The sandbox was not found"
enum { HEAD_MS = 10 * 60 * 1000 }; /* for a model that needs long for its first output */

struct passage {
	struct call *call;
	struct port_conn port_conn;
	struct relay *relay; /* NULL: not yet, or no longer */
	char box[ID_MAX + 1];
	uint16_t port;
	const char *host; /* for the server in the box; NULL: as the client sent it */
	int native;       /* not an E2B sandbox */
	int reused;       /* the connection had a request before */
	struct timer again;
};

static void proxy_entered(struct port_conn *x, int take_fd, const struct err *e);

static struct passage *proxy_of(const struct http_req *r)
{
	return ((struct call *)r->user)->state;
}

/* ---- what stays outside ---- */

static int is_hex(const char *text, size_t n)
{
	return strspn(text, "0123456789abcdef") >= n;
}

/* At any position: "Bearer <key>", or as a protocol of a WebSocket. */
static int holds_key(const char *text)
{
	for (; (text = strstr(text, KEY_PREFIX)); text++)
		if (is_hex(text + strlen(KEY_PREFIX), KEY_TEXT - strlen(KEY_PREFIX)))
			return 1;
	return 0;
}

static const char *proxy_sends(void *user, const struct http_header *h)
{
	struct passage *p = user;

	if (strncmp(h->name, "e2b-", 4) == 0 || strcmp(h->name, "x-access-token") == 0)
		return NULL;
	if ((strcmp(h->name, "x-api-key") == 0 || strcmp(h->name, "authorization") == 0 ||
	     strcmp(h->name, "sec-websocket-protocol") == 0) &&
	    holds_key(h->value))
		return NULL;
	return preview_header(p->call, h);
}

/* ---- what stays inside ---- */

/* An attribute of a cookie that ends at `end`: is it Domain? */
static int is_domain(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return end - at >= 6 && strncasecmp(at, "domain", 6) == 0 &&
	       (at + 6 == end || strchr("= \t", at[6]));
}

/* All boxes are below one domain: a cookie for that domain would be sent to the pages of every
 * other box. Without the attribute it is for the box's own name. */
static const char *own_cookie(struct call *c, const char *value)
{
	char *out = call_alloc(c, strlen(value) + 1), *to = out;
	const char *at = value;

	for (int first = 1; *at || first; first = 0) {
		const char *end = strchrnul(at, ';');

		if (first || !is_domain(at, end)) {
			if (!first)
				*to++ = ';';
			memcpy(to, at, (size_t)(end - at));
			to += end - at;
		}
		at = *end ? end + 1 : end;
	}
	*to = 0;
	return out;
}

/* A box must not replace the cookie of its preview: its client would be asked for the token again. */
static int proxy_is_our_cookie(const char *value)
{
	size_t n = strlen(PREVIEW_COOKIE);

	value += strspn(value, " \t");
	return strncmp(value, PREVIEW_COOKIE, n) == 0 && value[n + strspn(value + n, " \t")] == '=';
}

static const char *proxy_filter_header(void *user, const struct http_header *h)
{
	struct passage *p = user;

	if (strcmp(h->name, "clear-site-data") == 0)
		return NULL;
	if (strcmp(h->name, "set-cookie") == 0)
		return proxy_is_our_cookie(h->value) ? NULL : own_cookie(p->call, h->value);
	return h->value;
}

/* The Host header that the creator of the box has set for its servers; "${PORT}" is the port. */
static const char *proxy_masked(struct call *c, const struct box *b, uint16_t port)
{
	static const char place[] = "${PORT}";
	struct e2b_box x;
	const char *at;
	char *host;

	e2b_box_read(b, &x);
	if (!x.mask[0])
		return NULL;
	host = call_alloc(c, sizeof(x.mask) + 8);
	at = strstr(x.mask, place);
	if (at)
		snprintf(host, sizeof(x.mask) + 8, "%.*s%u%s", (int)(at - x.mask), x.mask, port,
			 at + strlen(place));
	else
		snprintf(host, sizeof(x.mask) + 8, "%s", x.mask);
	return host;
}

/* ---- what the box says ---- */

/* When a box ends, its servers close their connections as if the answer were complete. */
static int proxy_box_is_reachable(void *user)
{
	const struct passage *p = user;
	const struct box *b = fleet_find(&p->call->api->fleet, p->box);

	return b && b->state == BOX_RUNNING && init_conn_is_open(&b->line);
}

/* The reason is a part of a sentence about the answer. */
static void proxy_no_answer(struct passage *p, int status, const char *why)
{
	char message[80];

	snprintf(message, sizeof(message), "The server on port %u gave no answer", p->port);
	preview_answer(p->call, &(struct preview_page){ .status = status,
							.code = "no_answer",
							.message = message,
							.why = why,
							.command = "atoll logs BOX" });
}

/* ---- the connection ---- */

/* A server may close a connection that waits, at the moment of the next request. Then the request is
 * sent again, so only one that may be sent twice uses such a connection. */
static int proxy_may_repeat(const struct http_req *r)
{
	return (strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0) &&
	       r->length == 0 && !r->upgrade;
}

static void proxy_spare(void *user, struct upstream_link take_link)
{
	struct passage *p = user;
	struct box *b = fleet_find(&p->call->api->fleet, p->box);

	if (b && b->state == BOX_RUNNING)
		port_conn_keep_idle(b, p->port, take_link.fd);
	else
		upstream_link_close(&take_link);
}

static void proxy_connect(struct passage *p, struct box *b)
{
	struct err e;

	if (!b)
		e2b_no_box(p->call, 502, p->box, 0, NOT_FOUND);
	else if (port_conn_open(&p->port_conn, b, p->port, &e) < 0)
		proxy_entered(&p->port_conn, -1, &e);
}

static void proxy_again(struct timer *t)
{
	struct passage *p = loop_owner(t, struct passage, again);

	relay_free(p->relay);
	p->relay = NULL;
	proxy_connect(p, fleet_find(&p->call->api->fleet, p->box));
}

static void proxy_failed(void *user, const char *why)
{
	struct passage *p = user;
	char text[160];

	if (p->reused && strcmp(why, RELAY_LATE) != 0) {
		p->reused = 0;
		timer_set(&p->again, 1); /* not here: the relay is in use */
		return;
	}
	if (!proxy_box_is_reachable(p)) {
		e2b_no_box(p->call, 502, p->box, 0, NOT_FOUND);
		return;
	}
	if (p->native) {
		proxy_no_answer(p, 502, why);
		return;
	}
	log_debug("a port of a box did not answer", LOG_S("box", p->box), LOG_U("port", p->port),
		  LOG_S("why", why));
	snprintf(text, sizeof(text), "The server at the port gave no answer: %s", why);
	e2b_no_box(p->call, 502, p->box, p->port, text);
}

static void proxy_switched(void *user)
{
	struct call *c = ((struct passage *)user)->call;

	c->endless = 1;
	c->req->on_eof = NULL; /* the end of one direction only: on_body_end() handles it */
}

static void proxy_relay(struct passage *p, int take_fd)
{
	struct call *c = p->call;
	const struct relay_rules rules = { .host = p->host,
					   .target = preview_target(p->call),
					   .sends = proxy_sends,
					   .returns = proxy_filter_header,
					   .failed = proxy_failed,
					   .close_is_complete = proxy_box_is_reachable,
					   .spare = proxy_spare,
					   .switched = proxy_switched,
					   .user = p,
					   .head_ms = HEAD_MS };

	p->relay = relay_new(c->req, c->api->loop, upstream_link_plain(take_fd), &rules);
	if (proxy_may_repeat(c->req)) /* it has no body that would end later */
		relay_body_end(p->relay);
	http_resume(c->req);
}

static void proxy_entered(struct port_conn *x, int take_fd, const struct err *e)
{
	struct passage *p = loop_owner(x, struct passage, port_conn);
	struct box *b = fleet_find(&p->call->api->fleet, p->box);
	struct call *c = p->call;

	if (take_fd >= 0) {
		proxy_relay(p, take_fd);
	} else if (e->kind == ERR_NOT_FOUND && !e->sys) {
		e2b_no_box(c, 502, p->box, 0, NOT_FOUND);
	} else if (e->kind == ERR_LIMIT && p->native) {
		proxy_no_answer(p, 503, e->msg);
	} else if (e->kind == ERR_LIMIT) {
		e2b_no_box(c, 503, p->box, p->port, e->msg);
	} else if (p->native && b && init_conn_is_open(&b->line)) {
		c->req->on_body = NULL; /* c->state is no longer a passage */
		c->req->on_body_end = c->req->on_drain = NULL;
		timer_fini(&p->again);
		preview_port_closed(c, b, p->port);
	} else {
		e2b_no_box(c, 502, p->box, p->port, "The sandbox is running but port is not open");
	}
}

/* ---- what the client says ---- */

static void on_body(struct http_req *r, const char *bytes, size_t n)
{
	if (proxy_of(r)->relay)
		relay_body(proxy_of(r)->relay, bytes, n);
}

static void on_body_end(struct http_req *r)
{
	if (proxy_of(r)->relay)
		relay_body_end(proxy_of(r)->relay);
}

static void on_drain(struct http_req *r)
{
	if (proxy_of(r)->relay)
		relay_drain(proxy_of(r)->relay);
}

/* A client that disconnects no longer needs the answer; the server in the box must notice. */
static void on_eof(struct http_req *r)
{
	http_abort(r);
}

static void proxy_drop(struct call *c)
{
	struct passage *p = c->state;

	port_conn_cancel(&p->port_conn);
	timer_fini(&p->again);
	relay_free(p->relay);
	p->relay = NULL;
}

void e2b_proxy(struct call *c, struct box *b, uint16_t port, int native)
{
	struct passage *p = call_alloc(c, sizeof(*p));
	struct http_req *r = c->req;
	int fd;

	*p = (struct passage){
		.call = c, .port = port, .native = native, .port_conn = { .done = proxy_entered }
	};
	memcpy(p->box, b->row.id, sizeof(p->box));
	p->host = native ? NULL : proxy_masked(c, b, port);
	c->state = p;
	c->drop = proxy_drop;
	r->on_body = on_body;
	r->on_body_end = on_body_end;
	r->on_drain = on_drain;
	r->on_eof = on_eof;
	http_want_body(r, HTTP_BODY_STREAM, 0);
	http_pause(r); /* until the server in the box can receive it */
	timer_init(&p->again, c->api->loop, proxy_again);
	fd = proxy_may_repeat(r) ? port_conn_take_idle(b, port) : -1;
	p->reused = fd >= 0;
	if (p->reused)
		proxy_relay(p, fd);
	else
		proxy_connect(p, b);
}
