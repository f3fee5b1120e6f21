/* otlp.c - see otlp.h. In the JSON form ids are hexadecimal and 64-bit numbers are texts. */
#include "trace/otlp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OTLP_ERROR = 2 }; /* of a status */

static json_t *otlp_hex(const uint8_t *bytes, unsigned n)
{
	char text[33];

	for (unsigned i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return json_string(text);
}

static json_t *otlp_time(int64_t ns)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)ns);
	return json_string(text);
}

/* A value that was cut within a character is not UTF-8: it loses that character. */
static json_t *otlp_text(const char *text)
{
	json_t *v = json_string(text);
	size_t n = strlen(text);

	for (unsigned i = 1; !v && i < 4 && i <= n; i++)
		v = json_stringn(text, n - i);
	return v ? v : json_string("");
}

static json_t *otlp_attribute(const char *key, const char *text)
{
	return json_pack("{s:s, s:{s:o}}", "key", key, "value", "stringValue", otlp_text(text));
}

static json_t *otlp_attributes(const struct trace_span *s)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < s->n; i++)
		if (s->v[i].is_number)
			json_array_append_new(all, json_pack("{s:s, s:{s:o}}", "key", s->v[i].key,
							     "value", "intValue",
							     otlp_time(s->v[i].number)));
		else
			json_array_append_new(all, otlp_attribute(s->v[i].key, s->v[i].text));
	return all;
}

static json_t *otlp_span(const struct trace_span *s)
{
	static const uint8_t none[8];
	json_t *doc =
		json_pack("{s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:i}", "traceId",
			  otlp_hex(s->at.trace, 16), "spanId", otlp_hex(s->at.span, 8), "name",
			  otlp_text(s->name), "kind", (int)s->kind, "startTimeUnixNano",
			  otlp_time(s->start_ns), "endTimeUnixNano", otlp_time(s->end_ns),
			  "attributes", otlp_attributes(s), "flags", (int)s->at.flags);

	if (memcmp(s->at.parent, none, sizeof(none)) != 0)
		json_object_set_new(doc, "parentSpanId", otlp_hex(s->at.parent, 8));
	if (s->failed)
		json_object_set_new(doc, "status", json_pack("{s:i}", "code", OTLP_ERROR));
	return doc;
}

json_t *otlp_request(const struct otlp_resource *r, const struct trace_span *ring, unsigned room,
		     unsigned first, unsigned n)
{
	json_t *spans = json_array(), *resource = json_array();

	json_array_append_new(resource, otlp_attribute("service.name", "atoll"));
	json_array_append_new(resource, otlp_attribute("service.version", r->version));
	json_array_append_new(resource, otlp_attribute("host.name", r->host));
	for (unsigned i = 0; i < n; i++)
		json_array_append_new(spans, otlp_span(&ring[(first + i) % room]));
	return json_pack("{s:[{s:{s:o}, s:[{s:{s:s, s:s}, s:o}]}]}", "resourceSpans", "resource",
			 "attributes", resource, "scopeSpans", "scope", "name", "atoll", "version",
			 r->version, "spans", spans);
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
