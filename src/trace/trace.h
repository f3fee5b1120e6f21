/* trace.h - spans of requests, boxes, execs, pipelines and model calls, for an OpenTelemetry collector.
 * Owns: the queue of spans, the request to the collector.
 *
 *   request ── box create ── its parts
 *         ├─── exec ── (spans of the program, which finds TRACEPARENT in its environment)
 *         └─── pipeline ── stage ── model call, exec
 *
 * A span is written to the queue when it ends, without an allocation. Once a second, and whenever
 * TRACE_BATCH spans wait, they are sent as OTLP/HTTP JSON, by the outbound process. When the collector
 * does not answer, its spans are dropped and counted, and the next attempt is made later. There is one
 * tracer per process; without trace_start() no span is recorded, and a traceparent is only passed
 * on. */
#pragma once
#include "base/err.h"
#include "trace/context.h"
#include <stddef.h>

enum {
	TRACE_SPANS = 2048, /* in the queue */
	TRACE_BATCH = 256,
	TRACE_ATTRIBUTES = 8,
	TRACE_NAME = 64,
	TRACE_VALUE = 64 /* bytes; longer ones are cut */
};

enum trace_kind { TRACE_INTERNAL = 1, TRACE_SERVER, TRACE_CLIENT }; /* the numbers of OTLP */

struct trace_span {
	struct trace_context at;
	char name[TRACE_NAME];
	enum trace_kind kind;
	int64_t start_ns, end_ns; /* wall clock */
	int failed;
	unsigned n;
	struct {
		const char *key; /* static */
		int is_number;
		int64_t number;
		char text[TRACE_VALUE];
	} v[TRACE_ATTRIBUTES];
};

struct loop;
struct outbound;
struct trace_conf {
	const char *endpoint;       /* URL; without a path: /v1/traces is added */
	const char *const *headers; /* "Name: value"; NULL-terminated, or NULL */
	double sample;              /* part of the traces that are recorded, 0 to 1 */
};
/* The texts of conf stay valid. */
must_check int trace_start(const struct trace_conf *conf, struct loop *l, struct outbound *o,
			   struct err *e);
void trace_stop(void); /* allowed without trace_start() */

/* The context of a new request. A client that sends a traceparent decides whether its trace is
 * recorded. */
void trace_request(struct trace_context *out, const char *traceparent);

/* A span that has ended; its attributes are added afterwards. NULL: not recorded, or the queue is
 * full; the functions below allow it. */
struct trace_span *trace_add(const struct trace_context *at, const char *name, enum trace_kind kind,
			     int64_t start_ns, int64_t end_ns);
void trace_text(struct trace_span *s, const char *key, const char *value);
void trace_number(struct trace_span *s, const char *key, int64_t value);
void trace_failed(struct trace_span *s);
int64_t trace_now_ns(void);

struct trace_figures {
	uint64_t sent, dropped, failed;
};
struct trace_figures trace_figures(void);
