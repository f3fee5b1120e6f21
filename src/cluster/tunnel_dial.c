/* tunnel_dial.c - see tunnel_dial.h. */
#include "cluster/tunnel_dial.h"
#include "cluster/certificates.h"
#include "cluster/tunnel_node.h"
#include "http/tls.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { DIAL_HEAD_MAX = 4096 }; /* bytes of the answer */

static void dial_release(struct tunnel_dial *d)
{
	watch_stop(&d->watch);
	timer_fini(&d->clock);
	buf_fini(&d->request);
	buf_fini(&d->answer);
}

void tunnel_dial_stop(struct tunnel_dial *d)
{
	dial_release(d);
	upstream_link_close(&d->conn);
}

static void dial_fail(struct tunnel_dial *d, const char *why)
{
	tunnel_dial_stop(d); /* frees the answer: why must not be in it */
	d->done(d, NULL, 0, why);
}

/* 1: it is complete. 0: it continues when the socket is ready. -1: failed; done() was called. */
static int dial_shake(struct tunnel_dial *d)
{
	struct cluster_peer peer;
	struct err e;
	char text[200];
	int rc;

	ERR_clear_error();
	rc = SSL_do_handshake(d->conn.tls);
	if (rc != 1) {
		int kind = SSL_get_error(d->conn.tls, rc);
		long verify = SSL_get_verify_result(d->conn.tls);

		if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
			watch_want(&d->watch, kind == SSL_ERROR_WANT_READ ? LOOP_READ : LOOP_WRITE);
			return 0;
		}
		snprintf(text, sizeof(text), "TLS handshake: %.150s",
			 verify != X509_V_OK         ? X509_verify_cert_error_string(verify)
			 : kind == SSL_ERROR_SYSCALL ? "the connection ended"
						     : tls_why());
		dial_fail(d, text);
		return -1;
	}
	d->shaken = 1;
	if (cluster_peer(d->conn.tls, &peer, &e) < 0) {
		dial_fail(d, e.msg);
		return -1;
	}
	if (peer.role != CLUSTER_GATEWAY) {
		dial_fail(d, "the other side has the certificate of a node, not of a gateway");
		return -1;
	}
	d->number = peer.number;
	return 1;
}

static int dial_wait(struct tunnel_dial *d, enum link_result result)
{
	if (result == LINK_WANTS_READ || result == LINK_WANTS_WRITE) {
		watch_want(&d->watch, result == LINK_WANTS_READ ? LOOP_READ : LOOP_WRITE);
		return 0;
	}
	dial_fail(d, result == LINK_END ? "the gateway closed the connection"
					: "the connection broke");
	return -1;
}

static int dial_send(struct tunnel_dial *d)
{
	struct iovec rest = { d->request.p + d->sent, d->request.len - d->sent };
	enum link_result result;
	size_t sent;

	if (rest.iov_len == 0)
		return 1;
	result = upstream_link_write(&d->conn, &rest, 1, &sent);
	d->sent += sent;
	return d->sent == d->request.len ? 1 : dial_wait(d, result);
}

/* The reason that a gateway gives in its answer; else the status line. */
static void dial_refused(struct tunnel_dial *d)
{
	static const char name[] = "\r\natoll-reason: ";
	const char *all = buf_str(&d->answer), *reason = strcasestr(all, name);
	char text[200];

	reason = reason ? reason + sizeof(name) - 1 : all;
	snprintf(text, sizeof(text), "the gateway refuses the tunnel: %.*s",
		 (int)strcspn(reason, "\r\n"), reason);
	dial_fail(d, text);
}

/* Byte by byte: what follows the head belongs to the next owner and stays in the TLS session. */
static int dial_read(struct tunnel_dial *d)
{
	static const char end[] = "\r\n\r\n";
	enum link_result result;
	char byte;
	size_t got;

	do {
		result = upstream_link_read(&d->conn, &byte, 1, &got);
		if (got == 0)
			return dial_wait(d, result);
		buf_add(&d->answer, &byte, 1);
		if (d->answer.len > DIAL_HEAD_MAX) {
			dial_fail(d, "the answer of the gateway is too long");
			return -1;
		}
	} while (d->answer.len < 4 || memcmp(d->answer.p + d->answer.len - 4, end, 4) != 0);
	if (strncmp(d->answer.p, "HTTP/1.1 101 ", 13) == 0)
		return 1;
	dial_refused(d);
	return -1;
}

static void dial_advance(struct tunnel_dial *d)
{
	struct upstream_link conn;

	if (!d->shaken && dial_shake(d) <= 0)
		return;
	if (dial_send(d) <= 0 || dial_read(d) <= 0)
		return;
	conn = d->conn;
	dial_release(d);
	d->done(d, &conn, d->number, NULL);
}

static void dial_ready(struct watch *w, unsigned what)
{
	(void)what;
	dial_advance(loop_owner(w, struct tunnel_dial, watch));
}

static void dial_late(struct timer *t)
{
	struct tunnel_dial *d = loop_owner(t, struct tunnel_dial, clock);

	dial_fail(d, d->shaken ? "the gateway did not answer in 5 s"
			       : "the TLS handshake did not end in 5 s");
}

void tunnel_dial_start(struct tunnel_dial *d, struct loop *l, int take_fd, struct ssl_ctx_st *tls,
		       const char *version, const char *machine, int control)
{
	int one = 1;

	d->conn.fd = take_fd;
	d->conn.tls = SSL_new(tls);
	if (!d->conn.tls || SSL_set_fd(d->conn.tls, take_fd) != 1)
		abort();
	SSL_set_connect_state(d->conn.tls);
	upstream_link_init(&d->conn);
	/* Fails only on a socket that is not TCP, as in tests. */
	(void)setsockopt(take_fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)fcntl(take_fd, F_SETFL, fcntl(take_fd, F_GETFL) | O_NONBLOCK);
	buf_printf(&d->request,
		   "GET /tunnel HTTP/1.1\r\nHost: gateway\r\nConnection: Upgrade\r\n"
		   "Upgrade: atoll-tunnel/1\r\nAtoll-Version: %s\r\nAtoll-Machine: %s\r\n"
		   "Atoll-Tunnel: %s\r\n\r\n",
		   version, machine, control ? "control" : "requests");
	watch_init(&d->watch, l, take_fd, dial_ready);
	timer_init(&d->clock, l, dial_late);
	timer_set(&d->clock, TUNNEL_DIAL_MS);
	watch_want(&d->watch, LOOP_WRITE); /* the first step comes from the loop */
}
