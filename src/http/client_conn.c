/* client_conn.c - the socket does not block; poll() waits for it, so every wait has a time
 * limit. */
#include "http/client_conn.h"
#include "http/client_conn_internal.h"
#include "base/clock.h"
#include "base/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
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

static int parse_unix(const char *text, const char *path, struct client_conn_url *out,
		      struct err *e)
{
	if (path[0] != '/')
		return bad_url(text, "the path of a socket begins with /", e);
	if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return bad_url(text, "the path is too long for a socket", e);
	out->kind = CLIENT_CONN_UNIX;
	strcpy(out->host, path);
	strcpy(out->header, "localhost");
	return 0;
}

static int parse_port(const char *text, const char *p, size_t n, struct client_conn_url *out,
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

static int parse_authority(const char *text, const char *p, size_t n, struct client_conn_url *out,
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

int client_conn_url_parse(const char *text, struct client_conn_url *out, struct err *e)
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
	out->kind = scheme == 8 ? CLIENT_CONN_TLS : CLIENT_CONN_TCP;
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

const char *client_conn_name(const struct client_conn_url *u)
{
	return u->kind == CLIENT_CONN_UNIX ? u->host : u->header;
}

int client_conn_wait(struct client_conn *d, short what, int ms, const char *action, struct err *e)
{
	int n = wait_for(d->fd, what, ms);

	if (n < 0)
		return err_sys(e, "%s %.120s", action, client_conn_name(d->url));
	if (n == 0) {
		errno = ETIMEDOUT;
		return err_sys(e, "%s %.120s", action, client_conn_name(d->url));
	}
	return 0;
}

/* ---- connecting ---- */

int client_conn_connect(struct client_conn *d, const struct sockaddr *to, socklen_t len,
			uint32_t ms, struct err *e)
{
	int failed = 0, one = 1;
	socklen_t size = sizeof(failed);

	d->fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (d->fd < 0)
		return err_sys(e, "connect to %.120s", client_conn_name(d->url));
	if (connect(d->fd, to, len) < 0) {
		if (errno != EINPROGRESS && errno != EAGAIN)
			return err_sys(e, "connect to %.120s", client_conn_name(d->url));
		if (client_conn_wait(d, POLLOUT, (int)ms, "connect to", e) < 0)
			return -1;
		if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &failed, &size) < 0 || failed) {
			errno = failed;
			return err_sys(e, "connect to %.120s", client_conn_name(d->url));
		}
	}
	if (to->sa_family != AF_UNIX)
		(void)setsockopt(d->fd, IPPROTO_TCP, TCP_NODELAY, &one,
				 sizeof(one)); /* slower, no more */
	return 0;
}

static int open_unix(struct client_conn *d, uint32_t ms, struct err *e)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	strcpy(un.sun_path, d->url->host);
	return client_conn_connect(d, (const void *)&un, sizeof(un), ms, e);
}

/* An address written in digits is connected to here; a host name has to be resolved first. */
static int open_tcp(struct client_conn *d, uint32_t ms, struct err *e)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	in_port_t port = htons((uint16_t)strtoul(d->url->port, NULL, 10));

	v4.sin_port = v6.sin6_port = port;
	if (inet_pton(AF_INET, d->url->host, &v4.sin_addr) == 1)
		return client_conn_connect(d, (const void *)&v4, sizeof(v4), ms, e);
	if (inet_pton(AF_INET6, d->url->host, &v6.sin6_addr) == 1)
		return client_conn_connect(d, (const void *)&v6, sizeof(v6), ms, e);
	return client_conn_open_name(d, ms, e);
}

int client_conn_url_is_plain(const struct client_conn_url *u)
{
	unsigned char ip[16];

	return u->kind == CLIENT_CONN_UNIX ||
	       (u->kind == CLIENT_CONN_TCP &&
		(inet_pton(AF_INET, u->host, ip) == 1 || inet_pton(AF_INET6, u->host, ip) == 1));
}

int client_conn_open(struct client_conn *d, const struct client_conn_url *url,
		     struct ssl_ctx_st *tls, uint32_t connect_ms, struct err *e)
{
	int failed;

	*d = (struct client_conn){ .fd = -1, .stall_ms = -1, .url = url };
	failed = url->kind == CLIENT_CONN_UNIX ? open_unix(d, connect_ms, e)
					       : open_tcp(d, connect_ms, e);
	if (!failed && url->kind == CLIENT_CONN_TLS)
		failed = client_conn_tls_open(d, tls, connect_ms, e);
	if (failed)
		client_conn_close(d);
	return failed;
}

void client_conn_close(struct client_conn *d)
{
	if (d->ssl)
		client_conn_tls_close(d);
	own_close_fd(&d->fd);
}

/* ---- bytes ---- */

ssize_t client_conn_read_now(struct client_conn *d, void *out, size_t n, struct err *e)
{
	ssize_t got;

	if (d->ssl)
		return client_conn_tls_read_now(d, out, n, e);
	got = recv(d->fd, out, n, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return -2;
	return got < 0 ? err_sys(e, "read from %.120s", client_conn_name(d->url)) : got;
}

ssize_t client_conn_read(struct client_conn *d, void *out, size_t n, struct err *e)
{
	ssize_t got;

	while ((got = client_conn_read_now(d, out, n, e)) == -2)
		if (client_conn_wait(d, POLLIN, d->stall_ms, "read from", e) < 0)
			return -1;
	return got;
}

int client_conn_write(struct client_conn *d, const void *bytes, size_t n, struct err *e)
{
	const char *p = bytes;

	if (d->ssl)
		return client_conn_tls_write(d, p, n, e);
	while (n > 0) {
		ssize_t sent = send(d->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent >= 0) {
			p += sent;
			n -= (size_t)sent;
		} else if (errno == EAGAIN) {
			if (client_conn_wait(d, POLLOUT, d->stall_ms, "write to", e) < 0)
				return -1;
		} else if (errno != EINTR) {
			return err_sys(e, "write to %.120s", client_conn_name(d->url));
		}
	}
	return 0;
}

ssize_t client_conn_write_now(struct client_conn *d, const void *bytes, size_t n, struct err *e)
{
	ssize_t sent;

	if (d->ssl)
		return client_conn_tls_write_now(d, bytes, n, e);
	sent = send(d->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		return -2;
	return sent < 0 ? err_sys(e, "write to %.120s", client_conn_name(d->url)) : sent;
}

void client_conn_shut(struct client_conn *d)
{
	if (d->ssl)
		client_conn_tls_shut(d);
	else
		(void)shutdown(d->fd, SHUT_WR); /* fails only if the connection is broken */
}

int client_conn_is_stale(struct client_conn *d)
{
	return d->fd < 0 || wait_for(d->fd, POLLIN, 0) != 0;
}
