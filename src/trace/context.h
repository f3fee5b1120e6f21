/* context.h - which trace and span work belongs to: the header traceparent of W3C Trace Context. Pure
 * functions, except for the present context. */
#pragma once
#include <stdint.h>

enum { TRACE_TEXT = 56 }; /* bytes of a traceparent, with its NUL */

struct trace_context {
	uint8_t trace[16], span[8];
	uint8_t parent[8];   /* of the span; zero: none */
	uint8_t flags;       /* of W3C: 1 is sampled */
	uint8_t is_valid;    /* else there is no trace */
	uint8_t is_recorded; /* this server sends its spans to a collector */
};

/* 0: out has the trace, and the span of the client. -1: not a valid header; out is zeroed. */
int trace_parse(const char *header, struct trace_context *out);
void trace_format(const struct trace_context *c, char out[TRACE_TEXT]);
/* A span below `of`, or, if spans are not recorded, the same context. out is not valid if `of` is not. */
void trace_child(struct trace_context *out, const struct trace_context *of);
/* Random, never zero. */
void trace_new_id(uint8_t *out, unsigned n);

/* The context of the callback in progress: new boxes, execs and model calls belong to it. Returns the
 * one before, for trace_leave(). */
struct trace_context trace_enter(const struct trace_context *c);
void trace_leave(const struct trace_context *before);
const struct trace_context *trace_current(void); /* not valid outside of trace_enter() */
