/* otlp.c - see otlp.h. In the JSON form ids are hexadecimal and 64-bit numbers are texts. */
#include "trace/otlp.h"
#include "base/hex.h"
#include "base/quote.h"
#include "base/utf8.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OTLP_ERROR = 2 }; /* of a status */

static void otlp_hex(struct buf *out, const char *member, const uint8_t *bytes, unsigned n)
{
	char text[33];

	hex_encode(text, bytes, n);
	buf_puts(out, member);
	buf_add(out, text, 2 * n);
	buf_putc(out, '"');
}

static void otlp_number(struct buf *out, const char *member, int64_t n)
{
	buf_puts(out, member);
	buf_printf(out, "%lld\"", (long long)n);
}

/* A value that was cut within a character is not UTF-8: it loses that character. */
static void otlp_text(struct buf *out, const char *text)
{
	int bad;

	quote_json(out, text, utf8_complete(text, strlen(text), &bad));
}

static void otlp_attribute(struct buf *out, const char *key, const char *text)
{
	buf_puts(out, "{\"key\":");
	otlp_text(out, key);
	buf_puts(out, ",\"value\":{\"stringValue\":");
	otlp_text(out, text);
	buf_puts(out, "}}");
}

static void otlp_attributes(struct buf *out, const struct trace_span *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		if (i)
			buf_putc(out, ',');
		if (!s->v[i].is_number) {
			otlp_attribute(out, s->v[i].key, s->v[i].text);
			continue;
		}
		buf_puts(out, "{\"key\":");
		otlp_text(out, s->v[i].key);
		otlp_number(out, ",\"value\":{\"intValue\":\"", s->v[i].number);
		buf_puts(out, "}}");
	}
}

static void otlp_span(struct buf *out, const struct trace_span *s)
{
	static const uint8_t none[8];

	otlp_hex(out, "{\"traceId\":\"", s->at.trace, 16);
	otlp_hex(out, ",\"spanId\":\"", s->at.span, 8);
	if (memcmp(s->at.parent, none, sizeof(none)) != 0)
		otlp_hex(out, ",\"parentSpanId\":\"", s->at.parent, 8);
	buf_puts(out, ",\"name\":");
	otlp_text(out, s->name);
	otlp_number(out, ",\"startTimeUnixNano\":\"", s->start_ns);
	otlp_number(out, ",\"endTimeUnixNano\":\"", s->end_ns);
	buf_printf(out, ",\"kind\":%d,\"flags\":%d,\"attributes\":[", (int)s->kind,
		   (int)s->at.flags);
	otlp_attributes(out, s);
	buf_putc(out, ']');
	if (s->failed)
		buf_printf(out, ",\"status\":{\"code\":%d}", OTLP_ERROR);
	buf_putc(out, '}');
}

void otlp_request(struct buf *out, const struct otlp_resource *r, const struct trace_span *ring,
		  unsigned room, unsigned first, unsigned n)
{
	buf_puts(out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
	otlp_attribute(out, "service.name", "atoll");
	buf_putc(out, ',');
	otlp_attribute(out, "service.version", r->version);
	buf_putc(out, ',');
	otlp_attribute(out, "host.name", r->host);
	buf_puts(out, "]},\"scopeSpans\":[{\"scope\":{\"name\":\"atoll\",\"version\":");
	otlp_text(out, r->version);
	buf_puts(out, "},\"spans\":[");
	for (unsigned i = 0; i < n; i++) {
		if (i)
			buf_putc(out, ',');
		otlp_span(out, &ring[(first + i) % room]);
	}
	buf_puts(out, "]}]}]}");
}

unsigned otlp_rejected(const char *body, unsigned n)
{
	json_t *doc = json_loads(body, 0, NULL);
	const json_t *v = json_object_get(json_object_get(doc, "partialSuccess"), "rejectedSpans");
	/* A 64-bit number is a text; some collectors send a number. */
	long long rejected =
		json_is_string(v) ? strtoll(json_string_value(v), NULL, 10) : json_integer_value(v);

	json_decref(doc);
	return rejected < 0 ? 0 : rejected > n ? n : (unsigned)rejected;
}

int otlp_url(const char *endpoint, char *out, size_t size)
{
	const char *host = strstr(endpoint, "://");
	const char *path = host ? strchr(host + 3, '/') : NULL;
	size_t n = strlen(endpoint);
	int len;

	if (path && path[1])
		len = snprintf(out, size, "%s", endpoint);
	else
		len = snprintf(out, size, "%.*s/v1/traces", (int)(path ? n - 1 : n), endpoint);
	return len > 0 && (size_t)len < size ? 0 : -1;
}
