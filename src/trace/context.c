/* context.c - see context.h. */
#include "trace/context.h"
#include "base/clock.h"
#include "base/id.h"

#include <stdio.h>
#include <string.h>

static struct trace_context current;

/* Ids distinguish spans and are no secrets: a generator with a random start, without a system call. */
static uint64_t trace_random(void)
{
	static uint64_t state;
	struct err e;
	uint64_t x;

	if (!state && id_random(&state, sizeof(state), &e) < 0)
		state = now_ns();
	x = state += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

void trace_new_id(uint8_t *out, unsigned n)
{
	for (unsigned i = 0; i < n; i += 8) {
		uint64_t x;

		do
			x = trace_random();
		while (!x);
		memcpy(out + i, &x, n - i < 8 ? n - i : 8);
	}
}

static int trace_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Lower-case digits only, as W3C requires. -1: another character. */
static int trace_hex(const char *text, uint8_t *out, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		int high = trace_digit(text[2 * i]),
		    low = high < 0 ? -1 : trace_digit(text[2 * i + 1]);

		if (low < 0)
			return -1;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

static int trace_is_zero(const uint8_t *bytes, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (bytes[i])
			return 0;
	return 1;
}

int trace_parse(const char *header, struct trace_context *out)
{
	struct trace_context c = { .is_valid = 1 };
	size_t n = header ? strlen(header) : 0;
	uint8_t version;

	*out = (struct trace_context){ 0 };
	if (n < TRACE_TEXT - 1 || header[2] != '-' || header[35] != '-' || header[52] != '-' ||
	    trace_hex(header, &version, 1) < 0 || trace_hex(header + 3, c.trace, 16) < 0 ||
	    trace_hex(header + 36, c.span, 8) < 0 || trace_hex(header + 53, &c.flags, 1) < 0)
		return -1;
	/* A later version may append fields. */
	if (version == 0xff || (n > TRACE_TEXT - 1 && (version == 0 || header[55] != '-')) ||
	    trace_is_zero(c.trace, 16) || trace_is_zero(c.span, 8))
		return -1;
	*out = c;
	return 0;
}

static char *trace_put_hex(char *at, const uint8_t *bytes, unsigned n)
{
	static const char digits[] = "0123456789abcdef";

	for (unsigned i = 0; i < n; i++) {
		*at++ = digits[bytes[i] >> 4];
		*at++ = digits[bytes[i] & 15];
	}
	return at;
}

void trace_format(const struct trace_context *c, char out[TRACE_TEXT])
{
	uint8_t flags = c->flags & 1; /* of version 00 */
	char *at = out;

	memcpy(at, "00-", 3);
	at = trace_put_hex(at + 3, c->trace, 16);
	*at++ = '-';
	at = trace_put_hex(at, c->span, 8);
	*at++ = '-';
	at = trace_put_hex(at, &flags, 1);
	*at = 0;
}

void trace_child(struct trace_context *out, const struct trace_context *of)
{
	struct trace_context c = *of;

	if (c.is_recorded) {
		memcpy(c.parent, of->span, sizeof(c.parent));
		trace_new_id(c.span, sizeof(c.span));
	}
	*out = c;
}

struct trace_context trace_enter(const struct trace_context *c)
{
	struct trace_context before = current;

	current = *c;
	return before;
}

void trace_leave(const struct trace_context *before)
{
	current = *before;
}

const struct trace_context *trace_current(void)
{
	return &current;
}
