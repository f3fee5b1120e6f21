/* event_stream.h - events as they happen, to one client: NDJSON, or SSE.
 * Owns: up to three bytes per stream, the beginning of a character whose end has not come yet. */
#pragma once
#include "api/api.h"

enum feed_kind { FEED_NONE, FEED_NDJSON, FEED_SSE };

struct feed {
	struct http_req *req;
	enum feed_kind kind;
	struct {
		char bytes[4];
		unsigned n;
		uint64_t offset;
	} rest[2];
};

enum feed_kind feed_wanted(const struct call *c); /* by Accept */
void feed_begin(struct feed *f, struct http_req *r, enum feed_kind kind);
/* All return 1 when the client should be waited for. */
int feed_event(struct feed *f, json_t *take_event);
/* With a number that an SSE client gives back as Last-Event-ID; 0: without one. */
int feed_event_at(struct feed *f, int64_t id, json_t *take_event);
/* {"type":"stdout","offset":N,"data":"..."}; what is not UTF-8, or has a NUL, goes as "base64". */
int feed_output(struct feed *f, const char *type, unsigned stream, uint64_t offset,
		const char *bytes, size_t n);
void feed_flush(struct feed *f, const char *const types[2]); /* what was held back */
void feed_end(struct feed *f);

/* How many of n bytes are whole UTF-8 characters; *bad: there is one that never can be. */
size_t feed_utf8(const char *bytes, size_t n, int *bad);
void feed_quote(struct buf *out, const char *text, size_t n); /* as a JSON string, quotes and all */
