/* client_conn_tls.c - the part of client_conn.c that needs the resolver and OpenSSL: host names
 * and TLS.
 * The small client executable has http/client_conn_plain.c in its place, see
 * docs/architecture.md. */
#include "http/client_conn_internal.h"
#include "base/cleanup.h"
#include "http/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>

int client_conn_open_name(struct client_conn *d, uint32_t ms, struct err *e)
{
	struct addrinfo want = { .ai_socktype = SOCK_STREAM }, *all;
	int failed = getaddrinfo(d->url->host, d->url->port, &want, &all);

	if (failed)
		return err_set(e, ERR_NOT_FOUND, "find %.120s: %s", d->url->host,
			       gai_strerror(failed));
	failed = -1;
	for (struct addrinfo *a = all; a && failed; a = a->ai_next) {
		client_conn_close(d);
		failed = client_conn_connect(d, a->ai_addr, a->ai_addrlen, ms, e);
	}
	freeaddrinfo(all);
	return failed;
}

/* ---- quiet ---- */

/* OpenSSL writes without MSG_NOSIGNAL. This file must not change the action of SIGPIPE: a
 * command whose output is piped to another program relies on it. So SIGPIPE is blocked for the
 * duration of the call. */
struct quiet {
	sigset_t before;
	int was_pending;
};

static sigset_t only_sigpipe(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	return set;
}

static struct quiet quiet_begin(void)
{
	sigset_t set = only_sigpipe(), pending;
	struct quiet q;

	sigpending(&pending);
	q.was_pending = sigismember(&pending, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &set, &q.before);
	return q;
}

static void quiet_end(const struct quiet *q)
{
	sigset_t set = only_sigpipe();
	int saved = errno;

	if (!q->was_pending)
		while (sigtimedwait(&set, NULL, &(struct timespec){ 0 }) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &q->before, NULL);
	errno = saved;
}

enum tls_act { TLS_CONNECT, TLS_READ, TLS_WRITE };

static int tls_do(struct client_conn *d, enum tls_act act, void *bytes, size_t n)
{
	struct quiet q = quiet_begin();
	int len = n > 1 << 20 ? 1 << 20 : (int)n, got;

	ERR_clear_error();
	errno = 0;
	got = act == TLS_CONNECT ? SSL_connect(d->ssl)
	      : act == TLS_READ  ? SSL_read(d->ssl, bytes, len)
				 : SSL_write(d->ssl, bytes, len);
	quiet_end(&q);
	return got;
}

static int expect_name(SSL *ssl, const char *host)
{
	unsigned char ip[16];

	if (inet_pton(AF_INET, host, ip) == 1 || inet_pton(AF_INET6, host, ip) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	return SSL_set_tlsext_host_name(ssl, host) && SSL_set1_host(ssl, host);
}

static int tls_refused(struct client_conn *d, const char *action, struct err *e)
{
	long verdict = SSL_get_verify_result(d->ssl);

	if (verdict != X509_V_OK) {
		ERR_clear_error();
		return err_set(e, ERR_DENIED, "%s %.100s: its certificate: %s", action,
			       client_conn_name(d->url), X509_verify_cert_error_string(verdict));
	}
	return err_set(e, ERR_SYS, "%s %.100s: TLS: %s", action, client_conn_name(d->url),
		       tls_why());
}

/* The event that an SSL_...() call which returned `n` waits for. 0: try again, 1: the end, -1:
 * failed. */
static int tls_wait(struct client_conn *d, int n, int ms, const char *action, struct err *e)
{
	switch (SSL_get_error(d->ssl, n)) {
	case SSL_ERROR_WANT_READ:
		return client_conn_wait(d, POLLIN, ms, action, e);
	case SSL_ERROR_WANT_WRITE:
		return client_conn_wait(d, POLLOUT, ms, action, e);
	case SSL_ERROR_ZERO_RETURN:
		return 1;
	case SSL_ERROR_SYSCALL:
		if (errno)
			return err_sys(e, "%s %.120s", action, client_conn_name(d->url));
		return 1;
	default:
		return tls_refused(d, action, e);
	}
}

int client_conn_tls_open(struct client_conn *d, struct ssl_ctx_st *tls, uint32_t ms, struct err *e)
{
	int n, verdict;

	ERR_clear_error();
	d->ssl = SSL_new(tls);
	if (!d->ssl || !SSL_set_fd(d->ssl, d->fd) || !expect_name(d->ssl, d->url->host))
		return err_set(e, ERR_SYS, "TLS with %.120s: %s", client_conn_name(d->url),
			       tls_why());
	while ((n = tls_do(d, TLS_CONNECT, NULL, 0)) != 1) {
		verdict = tls_wait(d, n, (int)ms, "connect to", e);
		if (verdict < 0)
			return -1;
		if (verdict > 0)
			return err_set(
				e, ERR_SYS,
				"connect to %.120s: it closed the connection in the TLS handshake",
				client_conn_name(d->url));
	}
	return 0;
}

void client_conn_tls_close(struct client_conn *d)
{
	SSL_free(d->ssl);
	d->ssl = NULL;
}

ssize_t client_conn_tls_read_now(struct client_conn *d, void *out, size_t n, struct err *e)
{
	ssize_t got;
	int verdict;

	got = tls_do(d, TLS_READ, out, n);
	if (got > 0)
		return got;
	verdict = SSL_get_error(d->ssl, (int)got);
	if (verdict == SSL_ERROR_WANT_READ || verdict == SSL_ERROR_WANT_WRITE)
		return -2;
	verdict = tls_wait(d, (int)got, 0, "read from", e);
	return verdict < 0 ? -1 : 0;
}

int client_conn_tls_write(struct client_conn *d, const char *p, size_t n, struct err *e)
{
	while (n > 0) {
		int sent = tls_do(d, TLS_WRITE, (void *)p, n), verdict;

		if (sent > 0) {
			p += sent;
			n -= (size_t)sent;
			continue;
		}
		verdict = tls_wait(d, sent, d->stall_ms, "write to", e);
		if (verdict)
			return verdict < 0 ? -1
					   : err_set(e, ERR_SYS,
						     "write to %.120s: it closed the connection",
						     client_conn_name(d->url));
	}
	return 0;
}

ssize_t client_conn_tls_write_now(struct client_conn *d, const void *bytes, size_t n, struct err *e)
{
	int sent = tls_do(d, TLS_WRITE, (void *)bytes, n), verdict;

	if (sent > 0)
		return sent;
	verdict = SSL_get_error(d->ssl, sent);
	if (verdict == SSL_ERROR_WANT_READ || verdict == SSL_ERROR_WANT_WRITE)
		return -2;
	if (tls_wait(d, sent, 0, "write to", e) < 0)
		return -1;
	return err_set(e, ERR_SYS, "write to %.120s: it closed the connection",
		       client_conn_name(d->url));
}

void client_conn_tls_shut(struct client_conn *d)
{
	struct quiet q = quiet_begin();

	(void)SSL_shutdown(d->ssl); /* sends the end; that of the peer is read later */
	quiet_end(&q);
}
