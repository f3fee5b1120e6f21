/* otlp.h - spans as OTLP/HTTP JSON (opentelemetry-proto, ExportTraceServiceRequest). Pure functions. */
#pragma once
#include "trace/trace.h"
#include <jansson.h>

struct otlp_resource {
	const char *version, *host;
};
/* n spans of a ring of `room`, from index first. */
json_t *otlp_request(const struct otlp_resource *r, const struct trace_span *ring, unsigned room,
		     unsigned first, unsigned n);
/* Spans that the collector rejected, from the body of its answer 200; at most n. */
unsigned otlp_rejected(const char *body, unsigned n);
/* The URL of a request for the setting trace.endpoint. -1: longer than size. */
int otlp_url(const char *endpoint, char *out, size_t size);
