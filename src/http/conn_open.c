/* conn_open.c - the beginning of a connection: accepted from a listener, or a tunnel that its owner
 * has established. */
#include "http/conn.h"
#include "base/cleanup.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

/* ---- its peer ---- */

static void name_inet(struct http_req *r, const struct sockaddr_storage *from)
{
	const struct sockaddr_in *four = (const void *)from;
	const struct sockaddr_in6 *six = (const void *)from;
	char text[INET6_ADDRSTRLEN] = "?";

	if (from->ss_family == AF_INET) {
		inet_ntop(AF_INET, &four->sin_addr, text, sizeof(text));
		snprintf(r->peer, sizeof(r->peer), "%s:%u", text, ntohs(four->sin_port));
	} else if (from->ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text));
		snprintf(r->peer, sizeof(r->peer), "[%s]:%u", text, ntohs(six->sin6_port));
	}
}

/* From the local end of the socket: a peer that has closed already has no address, but its uid is
 * known. */
static void name_peer(struct http_conn *c)
{
	struct http_req *r = &c->req;
	struct sockaddr_storage mine = { 0 }, from = { 0 };
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t mine_len = sizeof(mine), from_len = sizeof(from), peer_len = sizeof(peer);

	snprintf(r->peer, sizeof(r->peer), "?");
	if (getsockname(c->fd, (struct sockaddr *)&mine, &mine_len) < 0)
		return;
	if (mine.ss_family != AF_UNIX) {
		if (getpeername(c->fd, (struct sockaddr *)&from, &from_len) == 0)
			name_inet(r, &from);
	} else if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len) == 0) {
		r->unix_peer = 1;
		r->peer_uid = peer.uid;
		snprintf(r->peer, sizeof(r->peer), "unix:%u", peer.uid);
	}
}

static void set_socket(struct http_conn *c)
{
	int one = 1, idle_s = 30, every_s = 10, times = 3;

	name_peer(c);
	if (c->req.unix_peer)
		return;
	/* None of these should fail on a socket; if one does, the connection still works. */
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	/* Detects a peer that vanished without closing, even when nothing is sent. */
	(void)setsockopt(c->fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof(every_s));
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
}

/* ---- accepted ---- */

static struct bufferevent *bev_new(struct http_server *s, int fd, struct ssl_ctx_st *tls)
{
	struct bufferevent *bev;
	SSL *ssl;

	if (!tls)
		return bufferevent_socket_new(s->loop->base, fd, BEV_OPT_CLOSE_ON_FREE);
	ssl = SSL_new(tls);
	if (!ssl)
		return NULL;
	/* conn_free() frees it, if it was not detached. */
	bev = bufferevent_openssl_socket_new(s->loop->base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING, 0);
	if (!bev)
		SSL_free(ssl);
	return bev;
}

static struct http_conn *conn_begin(struct http_server *s, int fd, struct bufferevent *take_bev,
				    int tls)
{
	struct http_conn *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	c->bev = take_bev;
	c->fd = fd;
	c->tls = tls != 0;
	c->req.conn = c;
	c->req.server = s;
	c->arena.stock = &s->core->stock;
	set_socket(c);

	c->next = s->conns;
	c->link = &s->conns;
	if (c->next)
		c->next->link = &c->next;
	s->conns = c;
	s->open++;
	return c;
}

void conn_new(struct http_server *s, int take_fd, struct ssl_ctx_st *tls, const uint8_t key[16],
	      const char *why)
{
	auto_fd int fd = take_fd;
	struct bufferevent *bev = bev_new(s, fd, tls);
	struct http_conn *c;

	if (!bev) /* OpenSSL reports no reason; the peer sees that the connection closes */
		return;
	c = conn_begin(s, steal_fd(&fd), bev, tls != NULL);
	c->handshake = tls != NULL;
	if (!why)
		share_join(&s->core->shares, c, key);
	conn_watch(c);
	if (why) {
		c->refused = 1;
		s->core->refusing++;
		c->req.always = s->always ? s->always : "";
		reply_error(c, 503, why);
		conn_schedule(c);
	}
}

/* ---- tunnels ---- */

static void conn_add_input(struct http_conn *c, const void *bytes, size_t n)
{
	struct evbuffer *in = conn_input(c);

	/* libevent freezes the buffer against other code that fills it; not under TLS, where a
	 * frozen buffer would stop reading. */
	evbuffer_unfreeze(in, 0);
	if (evbuffer_add(in, bytes, n) < 0)
		abort();
	if (!c->tls)
		evbuffer_freeze(in, 0);
}

/* Bytes that OpenSSL has read from the socket: libevent waits for the socket only. */
static void conn_take_buffered(struct http_conn *c, SSL *tls)
{
	char bytes[4096];
	int n;

	while (SSL_has_pending(tls) && (n = SSL_read(tls, bytes, sizeof(bytes))) > 0)
		conn_add_input(c, bytes, (size_t)n);
	ERR_clear_error(); /* libevent meets the same error again */
	SSL_set_read_ahead(tls, 0);
}

static struct bufferevent *bev_of_link(struct http_server *s, int fd, SSL *tls)
{
	struct bufferevent *bev =
		tls ? bufferevent_openssl_socket_new(s->loop->base, fd, tls, BUFFEREVENT_SSL_OPEN,
						     0)
		    : bufferevent_socket_new(s->loop->base, fd, BEV_OPT_CLOSE_ON_FREE);

	if (!bev)
		abort();
	return bev;
}

void http_serve_link(struct http_server *s, struct http_link *l, int take_fd,
		     struct ssl_st *take_tls, const void *early, size_t n)
{
	struct http_conn *c;

	server_start(s);
	if (take_tls)
		SSL_set_mode(take_tls,
			     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	c = conn_begin(s, take_fd, bev_of_link(s, take_fd, take_tls), take_tls != NULL);
	c->served = l;
	l->conn = c;
	s->core->links++;
	c->req.trusted_peer = 1;
	c->req.unix_peer = 0; /* the uid of a local peer is not that of a client */
	if (n > 0)
		conn_add_input(c, early, n);
	if (take_tls)
		conn_take_buffered(c, take_tls);
	conn_watch(c);
	conn_schedule(c);
}

void http_link_cut(struct http_link *l)
{
	if (l->conn)
		conn_cut(l->conn, 0);
}

void conn_set_link(struct http_conn *c, enum http_link_state now)
{
	struct http_link *l = c->served;

	if (!l)
		return;
	if (now == HTTP_LINK_CLOSED) {
		c->served = NULL;
		l->conn = NULL;
		c->req.server->core->links--;
	}
	if (l->changed)
		l->changed(l, now);
}
