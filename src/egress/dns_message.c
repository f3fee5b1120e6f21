/* dns_message.c - see dns_message.h. RFC 1035, section 4; RFC 6891 (OPT); RFC 8914 (extended
 * errors). */
#include "egress/dns_message.h"

#include <string.h>

enum {
	DNS_HEAD = 12,
	DNS_IN = 1,
	DNS_OPT = 41,
	DNS_TTL = 60,
	DNS_EDE = 15,         /* option: extended error ... */
	DNS_EDE_BLOCKED = 15, /* ... with this code */
	DNS_WHY_MAX = 200,
};

static unsigned dns_u16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

static uint8_t *dns_put16(uint8_t *p, unsigned value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
	return p + 2;
}

static uint8_t *dns_put32(uint8_t *p, uint32_t value)
{
	return dns_put16(dns_put16(p, value >> 16), value & 0xffff);
}

/* The bytes of the name, with its end; 0: malformed. out: the canonical name, or "" if it is not a
 * host name. */
static size_t dns_name(const uint8_t *p, size_t n, char out[RULE_HOST])
{
	char text[256];
	size_t at = 0, len = 0;
	const char *why;
	uint16_t port;

	while (at < n && p[at]) {
		size_t label = p[at];

		if (label > 63 || at + 1 + label >= n || len + label + 1 >= sizeof(text))
			return 0;
		if (len)
			text[len++] = '.';
		memcpy(text + len, p + at + 1, label);
		len += label;
		at += 1 + label;
	}
	if (at >= n)
		return 0;
	/* A dot in a label would look like two labels. */
	for (size_t i = 0, end = 0; i < at; i++)
		if (i == end)
			end += 1u + p[i];
		else if (p[i] == '.')
			len = 0;
	if (net_authority_parse(text, len, out, &port, &why) < 0 || port || net_is_literal(out))
		out[0] = 0;
	return at + 1;
}

/* Only OPT may follow the question. */
static int dns_extra(const uint8_t *p, size_t n, unsigned count, struct dns_query *out)
{
	if (count == 0)
		return n == 0 ? DNS_OK : DNS_FORMERR;
	if (count > 1 || n < 11 || p[0] != 0 || dns_u16(p + 1) != DNS_OPT ||
	    n != 11 + dns_u16(p + 9))
		return DNS_FORMERR;
	out->edns = 1;
	return DNS_OK;
}

int dns_query_read(const uint8_t *bytes, size_t n, struct dns_query *out)
{
	size_t name;

	*out = (struct dns_query){ 0 };
	if (n < DNS_HEAD || n > DNS_MESSAGE_MAX / 2 || bytes[2] & 0x80)
		return -1;
	out->id = (uint16_t)dns_u16(bytes);
	out->recursive = bytes[2] & 1;
	if (bytes[2] & 0x78)
		return DNS_NOTIMP;
	if (dns_u16(bytes + 4) != 1 || dns_u16(bytes + 6) || dns_u16(bytes + 8))
		return DNS_FORMERR;
	name = dns_name(bytes + DNS_HEAD, n - DNS_HEAD, out->name);
	if (!name || n - DNS_HEAD < name + 4)
		return DNS_FORMERR;
	out->question = name + 4;
	out->type = (uint16_t)dns_u16(bytes + DNS_HEAD + name);
	if (dns_u16(bytes + DNS_HEAD + name + 2) != DNS_IN)
		return DNS_NOTIMP;
	return dns_extra(bytes + DNS_HEAD + out->question, n - DNS_HEAD - out->question,
			 dns_u16(bytes + 10), out);
}

static uint8_t *dns_put_opt(uint8_t *p, const char *why)
{
	size_t n = why ? strnlen(why, DNS_WHY_MAX) : 0;

	*p++ = 0;
	p = dns_put16(p, DNS_OPT);
	p = dns_put16(p, DNS_MESSAGE_MAX / 2);
	p = dns_put32(p, 0);
	p = dns_put16(p, why ? (unsigned)n + 6 : 0);
	if (!why)
		return p;
	p = dns_put16(p, DNS_EDE);
	p = dns_put16(p, (unsigned)n + 2);
	p = dns_put16(p, DNS_EDE_BLOCKED);
	memcpy(p, why, n);
	return p + n;
}

size_t dns_answer_write(const struct dns_query *q, const uint8_t *query, enum dns_code code,
			const uint32_t *address, const char *why, uint8_t out[DNS_MESSAGE_MAX])
{
	uint8_t *p = dns_put16(out, q->id);

	/* answer, recursion requested and available */
	p = dns_put16(p, 0x8080 | (q->recursive ? 0x0100 : 0) | (unsigned)code);
	p = dns_put16(p, q->question ? 1 : 0);
	p = dns_put16(p, address ? 1 : 0);
	p = dns_put16(p, 0);
	p = dns_put16(p, q->edns ? 1 : 0);
	memcpy(p, query + DNS_HEAD, q->question);
	p += q->question;
	if (address) {
		p = dns_put16(p, 0xc000 | DNS_HEAD); /* the name of the question */
		p = dns_put16(p, DNS_A);
		p = dns_put16(p, DNS_IN);
		p = dns_put32(p, DNS_TTL);
		p = dns_put16(p, 4);
		p = dns_put32(p, *address);
	}
	if (q->edns)
		p = dns_put_opt(p, why);
	return (size_t)(p - out);
}
