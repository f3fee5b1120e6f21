/* injection_fuzz.c - any bytes as the secrets of a box, and as the head of a request to its host.
 * A head with values has the same lines as the head without: a placeholder adds none, wherever it is. */
#include "base/buf.h"
#include "egress/injection.h"
#include "fuzz.h"
#include "secret/box_ca.h"
#include "wire/wire.h"

#include <assert.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

static void part(struct buf *out, char kind, const char *text)
{
	uint32_t n = (uint32_t)strlen(text);

	buf_putc(out, kind);
	buf_add(out, &n, sizeof(n));
	buf_add(out, text, n);
}

static struct injection *known(void)
{
	static struct injection *x;
	struct buf all = { 0 }, cert = { 0 }, key = { 0 };
	struct err e;

	if (x)
		return x;
	if (box_ca_make(&cert, &key, &e) < 0)
		abort();
	part(&all, WIRE_SECRET_CERT, buf_str(&cert));
	part(&all, WIRE_SECRET_KEY, buf_str(&key));
	part(&all, WIRE_SECRET_PLACEHOLDER, "atoll-placeholder");
	part(&all, WIRE_SECRET_VALUE, "the value & more");
	part(&all, WIRE_SECRET_IN, "header");
	part(&all, WIRE_SECRET_IN, "query");
	part(&all, WIRE_SECRET_HOST, "api.example");
	if (injection_parse(&x, all.p, all.len, &e) < 0)
		abort();
	buf_fini(&all);
	buf_fini(&cert);
	buf_fini(&key);
	return x;
}

static size_t lines(const char *text, size_t n)
{
	size_t count = 0;

	for (const char *at; (at = memmem(text, n, "\r\n", 2)); count++) {
		n -= (size_t)(at + 2 - text);
		text = at + 2;
	}
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct evbuffer *out = evbuffer_new();
	struct injection *x = NULL;
	struct err e;

	if (injection_parse(&x, (const char *)bytes, n, &e) == 0)
		injection_free(x);
	if (n <= INJECTION_HEAD &&
	    injection_write(known(), "api.example", 443, 1, (const char *)bytes, n, out) == 0) {
		size_t len = evbuffer_get_length(out);
		const char *text = (const char *)evbuffer_pullup(out, -1);

		assert(lines(text, len) == lines((const char *)bytes, n));
		evbuffer_drain(out, len);
		/* Not for another host: unchanged. */
		assert(injection_write(known(), "api.example", 80, 0, (const char *)bytes, n,
				       out) == 0);
		assert(evbuffer_get_length(out) == n &&
		       (n == 0 || memcmp(evbuffer_pullup(out, -1), bytes, n) == 0));
	}
	evbuffer_free(out);
	return 0;
}
