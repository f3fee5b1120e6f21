/* sse.h - a stream of events out of bytes that come in any pieces: server-sent events, or JSON a line.
 * Owns: what is not yet an event. Bounded: a line or an event that does not end is an error. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

enum { SSE_MOST = 8 << 20, SSE_NAME = 64 };

struct sse {
	int lines;   /* NDJSON: every line that is not empty is an event */
	size_t most; /* of an event; 0: SSE_MOST */
	struct buf line, data;
	char name[SSE_NAME]; /* "event:", cut */
	int has_data, after_cr, begun;
	/* -1: no more of it; sse_feed() returns that. data ends with a NUL. */
	int (*event)(void *ctx, const char *name, const char *data, size_t len, struct err *e);
	void *ctx;
};

must_check int sse_feed(struct sse *s, const char *bytes, size_t n, struct err *e);
/* The stream ended: of lines the last one may lack its end; an event that does is none. */
must_check int sse_end(struct sse *s, struct err *e);
void sse_fini(struct sse *s); /* fine on a zeroed one */
