/* event_stream.h - sends events to one client as they happen: NDJSON, or SSE.
 * Owns: up to three bytes per stream: the first bytes of a character whose last byte has not
 *  arrived yet. */
#pragma once
#include "api/api.h"

enum event_stream_kind { EVENT_STREAM_NONE, EVENT_STREAM_NDJSON, EVENT_STREAM_SSE };

struct event_stream {
	struct http_req *req;
	enum event_stream_kind kind;
	struct {
		char bytes[4];
		unsigned n;
		uint64_t offset;
	} rest[2];
};

enum event_stream_kind event_stream_wanted(const struct call *c); /* by Accept */
void event_stream_begin(struct event_stream *f, struct http_req *r, enum event_stream_kind kind);
/* All return 1 when the caller should wait until the client has read more. */
int event_stream_event(struct event_stream *f, json_t *take_event);
/* With an id that an SSE client sends back as Last-Event-ID; 0: without one. */
int event_stream_event_at(struct event_stream *f, int64_t id, json_t *take_event);
/* The same with a text as id; "": without one. */
int event_stream_event_named(struct event_stream *f, const char *id, json_t *take_event);
/* {"type":"stdout","offset":N,"data":"..."}; data that is not UTF-8, or has a NUL, is sent as
 * "base64". */
int event_stream_output(struct event_stream *f, const char *type, unsigned stream, uint64_t offset,
			const char *bytes, size_t n);
void event_stream_flush(struct event_stream *f,
			const char *const types[2]); /* sends the bytes of incomplete characters */
void event_stream_end(struct event_stream *f);

void event_stream_quote(struct buf *out, const char *text,
			size_t n); /* as a JSON string, quotes and all */
