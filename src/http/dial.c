/* dial.c - the socket does not block; poll() does, so that every wait has an end. */
#include "http/dial.h"
#include "http/tls.h"
#include "base/clock.h"
#include "base/own.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- addresses ---- */

static int bad_url(const char *text, const char *why, struct err *e)
{
	return err_set(
		e, ERR_INVALID,
		"'%.80s' is not an address: %s (http://host:port, https://host:port, unix:/path)",
		text, why);
}

static int parse_unix(const char *text, const char *path, struct dial_url *out, struct err *e)
{
	if (path[0] != '/')
		return bad_url(text, "the path of a socket begins with /", e);
	if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return bad_url(text, "the path is too long for a socket", e);
	out->kind = DIAL_UNIX;
	strcpy(out->host, path);
	strcpy(out->header, "localhost");
	return 0;
}

static int parse_port(const char *text, const char *p, size_t n, struct dial_url *out,
		      struct err *e)
{
	long port = 0;

	if (n == 0 || n > 5)
		return bad_url(text, "a port is 1 to 65535", e);
	for (size_t i = 0; i < n; i++) {
		if (p[i] < '0' || p[i] > '9')
			return bad_url(text, "a port is a number", e);
		port = port * 10 + p[i] - '0';
	}
	if (port < 1 || port > 65535)
		return bad_url(text, "a port is 1 to 65535", e);
	snprintf(out->port, sizeof(out->port), "%ld", port);
	return 0;
}

static int is_plain(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] <= ' ' || p[i] > '~')
			return 0;
	return 1;
}

static int parse_authority(const char *text, const char *p, size_t n, struct dial_url *out,
			   struct err *e)
{
	const char *host = p, *end = p + n, *colon;
	size_t len;

	if (!is_plain(p, n) || memchr(p, '@', n))
		return bad_url(text, "a host is letters, digits, dots and dashes", e);
	if (n && *p == '[') {
		const char *close = memchr(p, ']', n);

		if (!close)
			return bad_url(text, "a ] is missing", e);
		host = p + 1;
		len = (size_t)(close - host);
		colon = close + 1 < end ? close + 1 : NULL;
		if (colon && *colon != ':')
			return bad_url(text, "after ] comes a port", e);
	} else {
		colon = memchr(p, ':', n);
		len = colon ? (size_t)(colon - p) : n;
	}
	if (len == 0 || len >= sizeof(out->host))
		return bad_url(text, "there is no host", e);
	memcpy(out->host, host, len);
	out->host[len] = 0;
	snprintf(out->header, sizeof(out->header), "%.*s", (int)n, p);
	return colon ? parse_port(text, colon + 1, (size_t)(end - colon - 1), out, e) : 0;
}

int dial_url_parse(const char *text, struct dial_url *out, struct err *e)
{
	size_t scheme, n;
	const char *rest;

	memset(out, 0, sizeof(*out));
	if (strncmp(text, "unix:", 5) == 0)
		return parse_unix(text, text + 5 + (strncmp(text + 5, "//", 2) == 0 ? 2 : 0), out,
				  e);
	scheme = strncmp(text, "http://", 7) == 0 ? 7 : strncmp(text, "https://", 8) == 0 ? 8 : 0;
	if (!scheme)
		return bad_url(text, "it begins with http://, https:// or unix:", e);
	out->kind = scheme == 8 ? DIAL_TLS : DIAL_TCP;
	strcpy(out->port, scheme == 8 ? "443" : "80");
	n = strcspn(text + scheme, "/?#");
	if (parse_authority(text, text + scheme, n, out, e) < 0)
		return -1;
	rest = text + scheme + n;
	n = strlen(rest);
	while (n && rest[n - 1] == '/')
		n--;
	if (n >= sizeof(out->prefix) || !is_plain(rest, n) || strcspn(rest, "?#") < n)
		return bad_url(text, "what follows the host is only a path", e);
	memcpy(out->prefix, rest, n);
	return 0;
}

/* ---- quiet ---- */

/* OpenSSL writes without MSG_NOSIGNAL. What SIGPIPE does is not ours to change: whoever pipes the
 * output of a command somewhere counts on it. So it is held back for the moment of the call. */
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

static int tls_do(struct dial *d, enum tls_act act, void *bytes, size_t n)
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

/* ---- waiting ---- */

static int wait_for(int fd, short what, int ms)
{
	struct pollfd p = { .fd = fd, .events = what };
	uint64_t end = now_ns() + (uint64_t)(ms < 0 ? 0 : ms) * 1000000u;

	for (;;) {
		uint64_t now = now_ns();
		int n = poll(&p, 1,
			     ms < 0       ? -1
			     : now >= end ? 0
					  : (int)((end - now) / 1000000u) + 1);

		if (n >= 0 || errno != EINTR)
			return n;
	}
}

static const char *name_of(const struct dial_url *u)
{
	return u->kind == DIAL_UNIX ? u->host : u->header;
}

static int wait_peer(struct dial *d, short what, int ms, const char *verb, struct err *e)
{
	int n = wait_for(d->fd, what, ms);

	if (n < 0)
		return err_sys(e, "%s %.120s", verb, name_of(d->url));
	if (n == 0) {
		errno = ETIMEDOUT;
		return err_sys(e, "%s %.120s", verb, name_of(d->url));
	}
	return 0;
}

/* ---- connecting ---- */

static int connect_to(struct dial *d, const struct sockaddr *to, socklen_t len, uint32_t ms,
		      struct err *e)
{
	int failed = 0, one = 1;
	socklen_t size = sizeof(failed);

	d->fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (d->fd < 0)
		return err_sys(e, "connect to %.120s", name_of(d->url));
	if (connect(d->fd, to, len) < 0) {
		if (errno != EINPROGRESS && errno != EAGAIN)
			return err_sys(e, "connect to %.120s", name_of(d->url));
		if (wait_peer(d, POLLOUT, (int)ms, "connect to", e) < 0)
			return -1;
		if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &failed, &size) < 0 || failed) {
			errno = failed;
			return err_sys(e, "connect to %.120s", name_of(d->url));
		}
	}
	if (to->sa_family != AF_UNIX)
		(void)setsockopt(d->fd, IPPROTO_TCP, TCP_NODELAY, &one,
				 sizeof(one)); /* slower, no more */
	return 0;
}

static int open_unix(struct dial *d, uint32_t ms, struct err *e)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	strcpy(un.sun_path, d->url->host);
	return connect_to(d, (const void *)&un, sizeof(un), ms, e);
}

static int open_tcp(struct dial *d, uint32_t ms, struct err *e)
{
	struct addrinfo want = { .ai_socktype = SOCK_STREAM }, *all;
	int failed = getaddrinfo(d->url->host, d->url->port, &want, &all);

	if (failed)
		return err_set(e, ERR_NOT_FOUND, "find %.120s: %s", d->url->host,
			       gai_strerror(failed));
	failed = -1;
	for (struct addrinfo *a = all; a && failed; a = a->ai_next) {
		dial_close(d);
		failed = connect_to(d, a->ai_addr, a->ai_addrlen, ms, e);
	}
	freeaddrinfo(all);
	return failed;
}

static int expect_name(SSL *ssl, const char *host)
{
	unsigned char ip[16];

	if (inet_pton(AF_INET, host, ip) == 1 || inet_pton(AF_INET6, host, ip) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	return SSL_set_tlsext_host_name(ssl, host) && SSL_set1_host(ssl, host);
}

static int tls_refused(struct dial *d, const char *verb, struct err *e)
{
	long verdict = SSL_get_verify_result(d->ssl);

	if (verdict != X509_V_OK) {
		ERR_clear_error();
		return err_set(e, ERR_DENIED, "%s %.100s: its certificate: %s", verb,
			       name_of(d->url), X509_verify_cert_error_string(verdict));
	}
	return err_set(e, ERR_SYS, "%s %.100s: TLS: %s", verb, name_of(d->url), tls_why());
}

/* What an SSL_...() that returned `n` waits for. 0: try again, 1: the end, -1: failed. */
static int tls_wait(struct dial *d, int n, int ms, const char *verb, struct err *e)
{
	switch (SSL_get_error(d->ssl, n)) {
	case SSL_ERROR_WANT_READ:
		return wait_peer(d, POLLIN, ms, verb, e);
	case SSL_ERROR_WANT_WRITE:
		return wait_peer(d, POLLOUT, ms, verb, e);
	case SSL_ERROR_ZERO_RETURN:
		return 1;
	case SSL_ERROR_SYSCALL:
		if (errno)
			return err_sys(e, "%s %.120s", verb, name_of(d->url));
		return 1;
	default:
		return tls_refused(d, verb, e);
	}
}

static int open_tls(struct dial *d, struct ssl_ctx_st *tls, uint32_t ms, struct err *e)
{
	int n, verdict;

	ERR_clear_error();
	d->ssl = SSL_new(tls);
	if (!d->ssl || !SSL_set_fd(d->ssl, d->fd) || !expect_name(d->ssl, d->url->host))
		return err_set(e, ERR_SYS, "TLS with %.120s: %s", name_of(d->url), tls_why());
	while ((n = tls_do(d, TLS_CONNECT, NULL, 0)) != 1) {
		verdict = tls_wait(d, n, (int)ms, "connect to", e);
		if (verdict < 0)
			return -1;
		if (verdict > 0)
			return err_set(e, ERR_SYS,
				       "connect to %.120s: it hung up in the TLS handshake",
				       name_of(d->url));
	}
	return 0;
}

int dial_open(struct dial *d, const struct dial_url *url, struct ssl_ctx_st *tls,
	      uint32_t connect_ms, struct err *e)
{
	int failed;

	*d = (struct dial){ .fd = -1, .stall_ms = -1, .url = url };
	failed = url->kind == DIAL_UNIX ? open_unix(d, connect_ms, e) : open_tcp(d, connect_ms, e);
	if (!failed && url->kind == DIAL_TLS)
		failed = open_tls(d, tls, connect_ms, e);
	if (failed)
		dial_close(d);
	return failed;
}

void dial_close(struct dial *d)
{
	SSL_free(d->ssl);
	d->ssl = NULL;
	own_close_fd(&d->fd);
}

/* ---- bytes ---- */

ssize_t dial_read_now(struct dial *d, void *out, size_t n, struct err *e)
{
	ssize_t got;
	int verdict;

	if (!d->ssl) {
		got = recv(d->fd, out, n, MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return -2;
		return got < 0 ? err_sys(e, "read from %.120s", name_of(d->url)) : got;
	}
	got = tls_do(d, TLS_READ, out, n);
	if (got > 0)
		return got;
	verdict = SSL_get_error(d->ssl, (int)got);
	if (verdict == SSL_ERROR_WANT_READ || verdict == SSL_ERROR_WANT_WRITE)
		return -2;
	verdict = tls_wait(d, (int)got, 0, "read from", e);
	return verdict < 0 ? -1 : 0;
}

ssize_t dial_read(struct dial *d, void *out, size_t n, struct err *e)
{
	ssize_t got;

	while ((got = dial_read_now(d, out, n, e)) == -2)
		if (wait_peer(d, POLLIN, d->stall_ms, "read from", e) < 0)
			return -1;
	return got;
}

static int tls_write(struct dial *d, const char *p, size_t n, struct err *e)
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
					   : err_set(e, ERR_SYS, "write to %.120s: it hung up",
						     name_of(d->url));
	}
	return 0;
}

int dial_write(struct dial *d, const void *bytes, size_t n, struct err *e)
{
	const char *p = bytes;

	if (d->ssl)
		return tls_write(d, p, n, e);
	while (n > 0) {
		ssize_t sent = send(d->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent >= 0) {
			p += sent;
			n -= (size_t)sent;
		} else if (errno == EAGAIN) {
			if (wait_peer(d, POLLOUT, d->stall_ms, "write to", e) < 0)
				return -1;
		} else if (errno != EINTR) {
			return err_sys(e, "write to %.120s", name_of(d->url));
		}
	}
	return 0;
}

int dial_is_stale(struct dial *d)
{
	return d->fd < 0 || wait_for(d->fd, POLLIN, 0) != 0;
}
