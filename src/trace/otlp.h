/* otlp.h - spans as OTLP/HTTP JSON (opentelemetry-proto, ExportTraceServiceRequest). Pure functions. */
#pragma once
#include "base/buf.h"
#include "trace/trace.h"

struct otlp_resource {
	const char *version, *host;
};
/* Appends the request with n spans of a ring of `room`, from index first. */
void otlp_request(struct buf *out, const struct otlp_resource *r, const struct trace_span *ring,
		  unsigned room, unsigned first, unsigned n);
/* Spans that the collector rejected, from the body of its answer 200; at most n. */
unsigned otlp_rejected(const char *body, unsigned n);
/* The URL of a request for the setting trace.endpoint. -1: longer than size. */
int otlp_url(const char *endpoint, char *out, size_t size);
