/* intercept.c - opens a connection of a box to a host for which it has a placeholder (injection.h).
 *
 *   box ── CONNECT api.example:443 ──► "200", then its first bytes are read:
 *          a TLS handshake: egress answers it as api.example, and reads the request in it
 *          anything else:   a request without TLS
 *
 * The request is then treated as one to the proxy (proxy_http.c), with the difference that its host is
 * known before, and that the connection to the host uses TLS if that of the box does. */
#include "egress/injection.h"
#include "egress/proxy.h"

#include <event2/bufferevent_ssl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { TLS_HANDSHAKE = 0x16 }; /* first byte of a connection with TLS */

/* ---- bytes that were read before TLS begins ---- */

struct intercept_early {
	size_t n, at;
	char bytes[];
};

static int early_read(BIO *b, char *out, int n)
{
	struct intercept_early *x = BIO_get_data(b);
	int got;

	BIO_clear_retry_flags(b);
	if (x && x->at < x->n) {
		size_t most = x->n - x->at;

		most = most < (size_t)n ? most : (size_t)n;
		memcpy(out, x->bytes + x->at, most);
		x->at += most;
		return (int)most;
	}
	got = BIO_read(BIO_next(b), out, n);
	BIO_copy_next_retry(b);
	return got;
}

static long early_control(BIO *b, int what, long n, void *p)
{
	return BIO_next(b) ? BIO_ctrl(BIO_next(b), what, n, p) : 0;
}

static int early_free(BIO *b)
{
	free(BIO_get_data(b));
	BIO_set_data(b, NULL);
	return 1;
}

static BIO *early_bio(struct evbuffer *in)
{
	static BIO_METHOD *method;
	size_t n = evbuffer_get_length(in);
	struct intercept_early *x = calloc(1, sizeof(*x) + n);
	BIO *b;

	if (!method) {
		method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_FILTER, "early bytes");
		if (!method)
			abort();
		BIO_meth_set_read(method, early_read);
		BIO_meth_set_ctrl(method, early_control);
		BIO_meth_set_destroy(method, early_free);
	}
	b = BIO_new(method);
	if (!x || !b)
		abort();
	x->n = n;
	evbuffer_remove(in, x->bytes, n);
	BIO_set_data(b, x);
	BIO_set_init(b, 1);
	return b;
}

/* ---- TLS to the box ---- */

/* Sends the answer to CONNECT, if the box has sent its first bytes without waiting for it. (libevent lets
 * no other function take bytes out of the buffer of a bufferevent.) */
static int intercept_flush(struct proxy *p, int fd)
{
	size_t n = evbuffer_get_length(proxy_out(p->near));
	struct evbuffer_iovec part;

	if (n == 0)
		return 0;
	if (evbuffer_peek(proxy_out(p->near), -1, NULL, &part, 1) != 1 || part.iov_len != n)
		return -1;
	return send(fd, part.iov_base, n, MSG_NOSIGNAL) == (ssize_t)n ? 0 : -1;
}

static void intercept_tls(struct proxy *p)
{
	SSL *ssl = injection_accept(p->way->injection, p->host);
	int fd = bufferevent_getfd(p->near);
	BIO *socket, *early;

	if (!ssl) {
		proxy_cut(p, VERDICT_BAD, "no certificate could be made for this host");
		return;
	}
	if (intercept_flush(p, fd) < 0) {
		SSL_free(ssl);
		proxy_cut(p, VERDICT_CUT, "the box does not read");
		return;
	}
	socket = BIO_new_socket(fd, BIO_NOCLOSE);
	early = early_bio(proxy_in(p->near));
	if (!socket)
		abort();
	BIO_up_ref(socket);
	SSL_set_bio(ssl, BIO_push(early, socket), socket);
	bufferevent_setfd(p->near, -1);
	bufferevent_free(p->near);
	p->near = bufferevent_openssl_socket_new(p->way->egress->loop->base, fd, ssl,
						 BUFFEREVENT_SSL_ACCEPTING,
						 BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
	if (!p->near)
		abort();
	p->tls = 1;
	p->protocol = &proxy_http;
	proxy_watch_near(p);
}

static void intercept_ask(struct proxy *p)
{
	unsigned char first;

	if (evbuffer_copyout(proxy_in(p->near), &first, 1) != 1)
		return;
	if (first == TLS_HANDSHAKE) {
		intercept_tls(p);
		return;
	}
	p->protocol = &proxy_http;
	proxy_http.ask(p);
}

static int intercept_refuse(struct proxy *p, int status, const char *text)
{
	(void)p; /* a client that is about to begin TLS could not read it */
	(void)status;
	(void)text;
	return -1;
}

static const struct proxy_protocol intercept_protocol = {
	.ask = intercept_ask,
	.refuse = intercept_refuse,
};

int intercept_wants(const struct proxy *p, const char *host, uint16_t port)
{
	return injection_fits(p->way->injection, host, port, 1);
}

void intercept_begin(struct proxy *p, const char *host, uint16_t port)
{
	if (host != p->host)
		snprintf(p->host, sizeof(p->host), "%s", host);
	p->port = port;
	p->opened = 1;
	p->protocol = &intercept_protocol;
	timer_set(&p->clock, p->way->egress->conf.limits.head_ms);
	if (evbuffer_get_length(proxy_in(p->near)))
		intercept_ask(p);
}

/* ---- TLS to the host ---- */

struct bufferevent *intercept_far(struct proxy *p)
{
	SSL *ssl = injection_connect(p->way->egress->trust, p->host);

	return ssl ? bufferevent_openssl_socket_new(p->way->egress->loop->base, -1, ssl,
						    BUFFEREVENT_SSL_CONNECTING,
						    BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS)
		   : NULL;
}

const char *intercept_distrusts(const struct proxy *p)
{
	SSL *ssl = p->far ? bufferevent_openssl_get_ssl(p->far) : NULL;
	long result = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;

	ERR_clear_error();
	return result == X509_V_OK ? NULL : X509_verify_cert_error_string(result);
}

void intercept_close_near(struct proxy *p)
{
	SSL *ssl = bufferevent_openssl_get_ssl(p->near);

	if (ssl && SSL_is_init_finished(ssl))
		SSL_shutdown(ssl);
	ERR_clear_error();
}
