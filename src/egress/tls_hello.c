/* tls_hello.c - see tls_hello.h. RFC 8446, section 4.1.2; RFC 6066, section 3. */
#include "egress/tls_hello.h"

#include <string.h>

enum {
	TLS_HANDSHAKE = 22,
	TLS_CLIENT_HELLO = 1,
	TLS_SERVER_NAME = 0,
	TLS_ECH = 0xfe0d,
	TLS_RECORD_MAX = 1 << 14,
};

struct tls_part { /* bytes that were not read yet */
	const uint8_t *p;
	size_t n;
};

/* An integer of `size` bytes, or -1. */
static long tls_number(struct tls_part *in, unsigned size)
{
	long value = 0;

	if (in->n < size)
		return -1;
	for (unsigned i = 0; i < size; i++)
		value = value << 8 | in->p[i];
	in->p += size;
	in->n -= size;
	return value;
}

/* A vector with a length of `size` bytes; -1: incomplete. */
static int tls_vector(struct tls_part *in, unsigned size, struct tls_part *out)
{
	long n = tls_number(in, size);

	if (n < 0 || (size_t)n > in->n)
		return -1;
	*out = (struct tls_part){ in->p, (size_t)n };
	in->p += n;
	in->n -= (size_t)n;
	return 0;
}

/* Exactly one name, which is not an address. */
static int tls_server_name(struct tls_part ext, char out[RULE_HOST])
{
	struct tls_part list, name;
	const char *why;
	uint16_t port;

	if (out[0] || tls_vector(&ext, 2, &list) < 0 || ext.n || tls_number(&list, 1) != 0 ||
	    tls_vector(&list, 2, &name) < 0 || list.n)
		return -1;
	if (net_authority_parse((const char *)name.p, name.n, out, &port, &why) < 0 || port ||
	    net_is_literal(out))
		return -1;
	return 0;
}

static int tls_extensions(struct tls_part in, struct tls_hello *out)
{
	while (in.n) {
		struct tls_part ext;
		long type = tls_number(&in, 2);

		if (type < 0 || tls_vector(&in, 2, &ext) < 0)
			return -1;
		if (type == TLS_SERVER_NAME && tls_server_name(ext, out->name) < 0)
			return -1;
		out->ech |= type == TLS_ECH;
	}
	return 0;
}

static int tls_client_hello(struct tls_part in, struct tls_hello *out)
{
	struct tls_part session, ciphers, compression, extensions;

	if (in.n < 34 || in.p[0] != 3)
		return -1;
	in.p += 34; /* version, random */
	in.n -= 34;
	if (tls_vector(&in, 1, &session) < 0 || session.n > 32 ||
	    tls_vector(&in, 2, &ciphers) < 0 || ciphers.n < 2 || ciphers.n % 2 ||
	    tls_vector(&in, 1, &compression) < 0 || compression.n < 1)
		return -1;
	if (in.n == 0)
		return 0; /* no extensions, as before TLS 1.2 */
	if (tls_vector(&in, 2, &extensions) < 0 || in.n)
		return -1;
	return tls_extensions(extensions, out);
}

/* Copies the content of the records to hello, until it is complete. */
static enum tls_hello_state tls_join(struct tls_part in, uint8_t *hello, struct tls_part *out)
{
	size_t have = 0, want = 4;

	while (have < want) {
		size_t n;

		if (in.n && in.p[0] != TLS_HANDSHAKE)
			return TLS_HELLO_BAD;
		if (in.n > 1 && in.p[1] != 3)
			return TLS_HELLO_BAD;
		if (in.n < 5)
			return TLS_HELLO_MORE;
		n = (size_t)in.p[3] << 8 | in.p[4];
		if (n == 0 || n > TLS_RECORD_MAX || have + n > TLS_HELLO_MAX)
			return TLS_HELLO_BAD;
		if (in.n < 5 + n)
			return TLS_HELLO_MORE;
		memcpy(hello + have, in.p + 5, n);
		have += n;
		in.p += 5 + n;
		in.n -= 5 + n;
		if (hello[0] != TLS_CLIENT_HELLO)
			return TLS_HELLO_BAD;
		if (have >= 4)
			want = 4 + ((size_t)hello[1] << 16 | (size_t)hello[2] << 8 | hello[3]);
		if (want > TLS_HELLO_MAX)
			return TLS_HELLO_BAD;
	}
	*out = (struct tls_part){ hello + 4, want - 4 };
	return have == want ? TLS_HELLO_OK : TLS_HELLO_BAD;
}

enum tls_hello_state tls_hello_read(const uint8_t *bytes, size_t n, struct tls_hello *out)
{
	uint8_t hello[TLS_HELLO_MAX];
	struct tls_part body;
	enum tls_hello_state is = tls_join((struct tls_part){ bytes, n }, hello, &body);

	*out = (struct tls_hello){ 0 };
	if (is != TLS_HELLO_OK)
		return is;
	return tls_client_hello(body, out) < 0 ? TLS_HELLO_BAD : TLS_HELLO_OK;
}
