/* sse.h - parses server-sent events or JSON lines from bytes in any parts.
 * Owns: the incomplete event. Bounded: a line or an event over the limit is an error. */
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
	/* -1: stop; sse_feed() returns it. data is NUL-terminated. */
	int (*event)(void *ctx, const char *name, const char *data, size_t len, struct err *e);
	void *ctx;
};

must_check int sse_feed(struct sse *s, const char *bytes, size_t n, struct err *e);
/* The stream has ended: a last line without LF is an event, an incomplete server-sent event is
 * dropped. */
must_check int sse_end(struct sse *s, struct err *e);
void sse_fini(struct sse *s); /* fine on a zeroed one */
