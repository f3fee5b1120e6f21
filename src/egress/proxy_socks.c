/* proxy_socks.c - SOCKS5 (RFC 1928) on the port of the proxy: CONNECT without authentication.
 *
 *   5 n METHODS        ──►   5 0
 *   5 1 0 HOST PORT    ──►   5 CODE 0 1 0.0.0.0 0, then bytes as in proxy_tunnel.c */
#include "egress/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

enum { SOCKS_CONNECT = 1, SOCKS_V4 = 1, SOCKS_NAME = 3, SOCKS_V6 = 4, SOCKS_REQUEST = 4 + 256 + 2 };

enum socks_code {
	SOCKS_OK,
	SOCKS_FAILED,
	SOCKS_DENIED,
	SOCKS_NO_NETWORK,
	SOCKS_NO_HOST,
	SOCKS_REFUSED,
	SOCKS_TIMEOUT,
	SOCKS_NO_COMMAND,
	SOCKS_NO_FAMILY,
};

static void socks_reply(struct proxy *p, enum socks_code code)
{
	const uint8_t reply[10] = { SOCKS_VERSION, (uint8_t)code, 0, SOCKS_V4 };

	evbuffer_add(proxy_out(p->near), reply, sizeof(reply));
}

static enum socks_code socks_code_of(const struct proxy *p)
{
	switch (p->end.verdict) {
	case VERDICT_DENIED:
	case VERDICT_INTERNAL:
	case VERDICT_BUDGET:
		return SOCKS_DENIED;
	case VERDICT_UNRESOLVED:
		return SOCKS_NO_HOST;
	case VERDICT_UNREACHABLE:
		return SOCKS_REFUSED;
	case VERDICT_TIMEOUT:
		return SOCKS_TIMEOUT;
	default:
		return SOCKS_FAILED;
	}
}

static int socks_refuse(struct proxy *p, int status, const char *text)
{
	(void)status;
	(void)text; /* in the report */
	if (!p->greeted)
		return -1;
	socks_reply(p, p->socks_error ? (enum socks_code)p->socks_error : socks_code_of(p));
	return 0;
}

/* 0: wait for more bytes, or refused. */
static int socks_greet(struct proxy *p)
{
	struct evbuffer *in = proxy_in(p->near);
	uint8_t hello[2 + 255];
	size_t n = (size_t)evbuffer_copyout(in, hello, sizeof(hello));

	if (n < 2 || n < 2u + hello[1])
		return 0;
	if (!memchr(hello + 2, 0, hello[1])) {
		evbuffer_add(proxy_out(p->near), "\x05\xff", 2);
		proxy_leave(p);
		return 0;
	}
	evbuffer_drain(in, 2u + hello[1]);
	evbuffer_add(proxy_out(p->near), "\x05\x00", 2);
	p->greeted = 1;
	return 1;
}

/* Bytes of the address, without the port; 0: another family, or incomplete. */
static size_t socks_address(const uint8_t *v, size_t n)
{
	return v[3] == SOCKS_V4              ? 4
	       : v[3] == SOCKS_V6            ? 16
	       : v[3] == SOCKS_NAME && n > 4 ? 1u + v[4]
					     : 0;
}

static int socks_host(const uint8_t *v, char host[RULE_HOST])
{
	const char *why;
	uint16_t port;

	if (v[3] == SOCKS_NAME)
		return net_authority_parse((const char *)v + 5, v[4], host, &port, &why) < 0 || port
			       ? -1
			       : 0;
	return inet_ntop(v[3] == SOCKS_V4 ? AF_INET : AF_INET6, v + 4, host, RULE_HOST) ? 0 : -1;
}

static void socks_bad(struct proxy *p, enum socks_code code, const char *why)
{
	p->socks_error = code;
	proxy_refuse(p, 400, VERDICT_BAD, "%s", why);
}

static void socks_ask(struct proxy *p)
{
	struct evbuffer *in = proxy_in(p->near);
	uint8_t v[SOCKS_REQUEST] = { 0 };
	char host[RULE_HOST];
	size_t n, address;
	uint16_t port;

	if (!p->greeted && !socks_greet(p))
		return;
	n = (size_t)evbuffer_copyout(in, v, sizeof(v));
	address = n < 4 ? 0 : socks_address(v, n);
	if (n >= 4 && (v[0] != SOCKS_VERSION || v[2] != 0))
		socks_bad(p, SOCKS_FAILED, "not a SOCKS5 request");
	else if (n >= 4 && v[1] != SOCKS_CONNECT)
		socks_bad(p, SOCKS_NO_COMMAND, "the only SOCKS command here is CONNECT");
	else if (n >= 5 && !address)
		socks_bad(p, SOCKS_NO_FAMILY, "the SOCKS request has no address");
	if (p->stage != PROXY_ASKING || !address || n < 4 + address + 2)
		return;
	if (socks_host(v, host) < 0) {
		socks_bad(p, SOCKS_FAILED, "the SOCKS request names no plain host");
		return;
	}
	evbuffer_drain(in, 4 + address + 2);
	port = (uint16_t)(v[4 + address] << 8 | v[5 + address]);
	if (intercept_wants(p, host, port)) {
		socks_reply(p, SOCKS_OK);
		intercept_begin(p, host, port);
		return;
	}
	proxy_to(p, host, port, NULL, NULL);
}

static void socks_connected(struct proxy *p)
{
	socks_reply(p, SOCKS_OK);
	p->protocol = &proxy_tunnel;
}

const struct proxy_protocol proxy_socks = {
	.ask = socks_ask,
	.refuse = socks_refuse,
	.connected = socks_connected,
};
