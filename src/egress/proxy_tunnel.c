/* proxy_tunnel.c - connections whose bytes are passed unchanged: captured ones, and those of CONNECT.
 *
 * The destination is known, so the host is connected at once: protocols in which the server sends
 * first work. The first bytes of the box are checked before they are passed:
 *
 *   TLS     the server name must be that of the destination; else an alert
 *   HTTP    one strict request and its answer, as by the proxy (proxy_http.c); the Host header must be
 *           that of the destination
 *   others  passed; not to port 80
 *
 * A destination that is an address is not compared with names. */
#include "base/cleanup.h"
#include "egress/proxy.h"
#include "egress/tls_hello.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

enum {
	TUNNEL_PEEK = TLS_HELLO_MAX + 1024,
	TUNNEL_HTTP_PORT = 80,
	TUNNEL_METHOD = 20, /* longest name of an HTTP method */
};

enum first_bytes { FIRST_NONE, FIRST_MORE, FIRST_TLS, FIRST_HTTP, FIRST_OTHER };

/* ---- the first bytes ---- */

static int tunnel_is_method(const char *p, size_t n, int complete)
{
	static const char *const methods[] = { "GET",    "HEAD",    "POST",  "PUT",      "DELETE",
					       "PATCH",  "OPTIONS", "TRACE", "PROPFIND", "REPORT",
					       "MKCOL",  "COPY",    "MOVE",  "LOCK",     "UNLOCK",
					       "SEARCH", "CONNECT", "MERGE", "PROPPATCH" };

	for (unsigned i = 0; i < ARRAY_LEN(methods); i++)
		if (strncmp(p, methods[i], n) == 0 && (!complete || strlen(methods[i]) == n))
			return 1;
	return 0;
}

/* "METHOD target HTTP/1.1"; MORE: the start of it so far. */
static enum first_bytes tunnel_is_http(const char *p, size_t n)
{
	const char *space = memchr(p, ' ', n), *end = memchr(p, '\n', n);
	size_t method = space ? (size_t)(space - p) : n;

	if (method > TUNNEL_METHOD || !tunnel_is_method(p, method, space != NULL))
		return FIRST_OTHER;
	if (!end)
		return n < MESSAGE_HEAD ? FIRST_MORE : FIRST_OTHER;
	while (end > p && (end[-1] == '\r' || end[-1] == '\n'))
		end--;
	return end - p > 9 && strncmp(end - 9, " HTTP/1.", 8) == 0 ? FIRST_HTTP : FIRST_OTHER;
}

static enum first_bytes tunnel_first_bytes(struct proxy *p)
{
	size_t n = evbuffer_get_length(proxy_in(p->near));
	const char *bytes;

	n = n < MESSAGE_HEAD ? n : MESSAGE_HEAD;
	if (n == 0)
		return FIRST_NONE;
	bytes = (const char *)evbuffer_pullup(proxy_in(p->near), (ev_ssize_t)n);
	return bytes[0] == 22 ? FIRST_TLS : tunnel_is_http(bytes, n);
}

/* ---- refusals ---- */

/* In the protocol of the first bytes. Without any, or after bytes of the host, only a reset is
 * possible. */
static int tunnel_refuse(struct proxy *p, int status, const char *text)
{
	static const uint8_t alert[] = { 21, 3, 1, 0, 2, 2, 49 }; /* fatal: access_denied */
	enum first_bytes is = p->answered ? FIRST_OTHER : tunnel_first_bytes(p);

	if (is == FIRST_TLS)
		evbuffer_add(proxy_out(p->near), alert, sizeof(alert));
	else if (is == FIRST_HTTP)
		proxy_http.refuse(p, status, text);
	if (is == FIRST_TLS || is == FIRST_HTTP)
		return 0;
	return is != FIRST_OTHER && !p->near_eof && p->stage != PROXY_ASKING &&
			       p->stage != PROXY_PASSING
		       ? 1
		       : -1;
}

/* ASKING: the destination is refused without a request. Rules about requests may permit one. */
static void tunnel_ask(struct proxy *p)
{
	enum first_bytes is = tunnel_first_bytes(p);

	switch (p->late && is == FIRST_HTTP ? FIRST_OTHER : is) {
	case FIRST_HTTP:
		p->opened = 1;
		p->judged.verdict = VERDICT_OK;
		p->protocol = &proxy_http;
		timer_set(&p->clock, p->way->egress->conf.limits.head_ms);
		p->protocol->ask(p);
		break;
	case FIRST_MORE:
		break;
	default:
		proxy_refuse_judged(p);
	}
}

/* ---- the checks ---- */

enum tunnel_check { CHECK_WAIT, CHECK_PASS, CHECK_REFUSED };

static enum tunnel_check tunnel_check_tls(struct proxy *p)
{
	size_t n = evbuffer_get_length(proxy_in(p->near));
	struct tls_hello hello;
	enum tls_hello_state is;

	n = n < TUNNEL_PEEK ? n : TUNNEL_PEEK;
	is = tls_hello_read(evbuffer_pullup(proxy_in(p->near), (ev_ssize_t)n), n, &hello);
	if (is == TLS_HELLO_MORE && n < TUNNEL_PEEK && !p->near_eof)
		return CHECK_WAIT;
	if (is == TLS_HELLO_OK && strcmp(hello.name, p->host) == 0) {
		p->tunnel = 1;
		return CHECK_PASS;
	}
	if (is != TLS_HELLO_OK)
		proxy_refuse(p, 400, VERDICT_BAD, "the first TLS message is not a ClientHello");
	else if (!hello.name[0])
		proxy_refuse(p, 403, VERDICT_DENIED,
			     "the TLS client names no server; it must name %s (SNI)", p->host);
	else
		proxy_refuse(p, 403, VERDICT_DENIED,
			     "the TLS client names the server %s on a connection to %s", hello.name,
			     p->host);
	return CHECK_REFUSED;
}

/* The request is parsed and written by proxy_http.c from now on. */
static enum tunnel_check tunnel_check_http(struct proxy *p)
{
	size_t len = evbuffer_get_length(proxy_in(p->near)), n;
	size_t most = len < MESSAGE_HEAD ? len : MESSAGE_HEAD;
	const char *bytes = (const char *)evbuffer_pullup(proxy_in(p->near), (ev_ssize_t)most);
	const char *why;

	n = message_head_end(bytes, most);
	if (!n && len < MESSAGE_HEAD && !p->near_eof)
		return CHECK_WAIT;
	if (!n) {
		proxy_refuse(p, 431, VERDICT_BAD, "the head of the request is larger than %d bytes",
			     MESSAGE_HEAD);
		return CHECK_REFUSED;
	}
	if (message_origin_request(&p->ask, p->host, p->port, 0, bytes, n, &why) != 0) {
		proxy_refuse(p, 400, VERDICT_BAD, "%s", why);
		return CHECK_REFUSED;
	}
	p->method = p->ask.method;
	p->path = p->ask.path;
	if (proxy_check(p) != VERDICT_OK) {
		proxy_refuse_judged(p);
		return CHECK_REFUSED;
	}
	evbuffer_drain(proxy_in(p->near), n);
	p->protocol = &proxy_http;
	p->protocol->connected(p);
	return CHECK_PASS;
}

static enum tunnel_check tunnel_check(struct proxy *p)
{
	enum first_bytes is = tunnel_first_bytes(p);

	if (is == FIRST_MORE && p->near_eof)
		is = FIRST_OTHER;
	switch (is) {
	case FIRST_NONE:
		if (!p->near_eof)
			return CHECK_WAIT;
		break;
	case FIRST_MORE:
		return CHECK_WAIT;
	case FIRST_TLS:
		if (!net_is_literal(p->host))
			return tunnel_check_tls(p);
		break;
	case FIRST_HTTP:
		if (!p->answered)
			return tunnel_check_http(p);
		break;
	case FIRST_OTHER:
		if (p->port == TUNNEL_HTTP_PORT) {
			proxy_refuse(p, 400, VERDICT_BAD,
				     "neither HTTP nor TLS on a connection to port 80");
			return CHECK_REFUSED;
		}
	}
	p->tunnel = 1;
	return CHECK_PASS;
}

/* Until the first bytes of the box were checked, only bytes of the host are passed. */
static int tunnel_pass(struct proxy *p)
{
	enum tunnel_check is = tunnel_check(p);

	if (is == CHECK_REFUSED)
		return 0;
	if (is == CHECK_WAIT && p->port == TUNNEL_HTTP_PORT)
		return 1;
	if (is == CHECK_WAIT)
		return proxy_pass_in(p);
	return p->tunnel ? proxy_pass_tunnel(p) : p->protocol->pass(p);
}

static int tunnel_can_refuse(const struct proxy *p)
{
	return !p->answered;
}

static int tunnel_reads_near(const struct proxy *p)
{
	(void)p;
	return 1;
}

static void tunnel_connected(struct proxy *p)
{
	(void)p;
}

const struct proxy_protocol proxy_tunnel = {
	.ask = tunnel_ask,
	.refuse = tunnel_refuse,
	.connected = tunnel_connected,
	.pass = tunnel_pass,
	.can_refuse = tunnel_can_refuse,
	.reads_near = tunnel_reads_near,
};

/* ---- captured connections ---- */

/* The address that the program connected to. An address that stands for a name is that name. */
static void capture_destination(struct proxy *p, const struct sockaddr_storage *to)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)to;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)to;
	uint32_t address = ntohl(v4->sin_addr.s_addr);
	const char *name;

	if (to->ss_family == AF_INET6) {
		p->port = ntohs(v6->sin6_port);
		inet_ntop(AF_INET6, &v6->sin6_addr, p->host, sizeof(p->host));
		return;
	}
	p->port = ntohs(v4->sin_port);
	name = name_table_has(address) ? name_table_find(&p->way->names, address) : NULL;
	if (name)
		memcpy(p->host, name, strlen(name) + 1);
	else
		inet_ntop(AF_INET, &v4->sin_addr, p->host, sizeof(p->host));
}

void capture_accept(struct egress_endpoint *w, int take_fd)
{
	struct sockaddr_storage to;
	socklen_t n = sizeof(to);
	enum verdict is;
	struct proxy *p;

	if (getsockname(take_fd, (struct sockaddr *)&to, &n) < 0) {
		close(take_fd);
		return;
	}
	p = proxy_new(w, take_fd, &proxy_tunnel);
	capture_destination(p, &to);
	if (p->port == 53) {
		p->protocol = &proxy_dns;
		p->host[0] = 0;
		p->told = 1; /* refused names are reported, not connections */
	} else if (intercept_wants(p, p->host, p->port)) {
		intercept_begin(p, p->host, p->port);
	} else if ((is = proxy_check(p)) == VERDICT_OK || is == VERDICT_ASK) {
		proxy_to(p, p->host, p->port, NULL, NULL);
	} else {
		timer_set(&p->clock, PROXY_REFUSED_MS);
	}
}
