/* connect.h - the part of the Connect protocol that E2B's clients use: JSON, one request and one
 * answer, or one request and a stream of answers.
 * Owns: the envelope of a request while it is read; the keepalive of a stream. */
#pragma once
#include "e2b/e2b.h"

enum connect_code {
	CONNECT_CANCELED = 1,
	CONNECT_UNKNOWN,
	CONNECT_INVALID,
	CONNECT_DEADLINE,
	CONNECT_NOT_FOUND,
	CONNECT_EXISTS,
	CONNECT_DENIED,
	CONNECT_EXHAUSTED,
	CONNECT_PRECONDITION,
	CONNECT_ABORTED,
	CONNECT_RANGE,
	CONNECT_UNIMPLEMENTED,
	CONNECT_INTERNAL,
	CONNECT_UNAVAILABLE,
	CONNECT_LOSS,
	CONNECT_WHO,
	CONNECT_CODES,
};

/* Reads the request: a bare JSON object, or one envelope with it when the content type is that
 * of a stream. Then calls run(c, ask); ask belongs to the call and is valid as long as it. An
 * invalid request is answered here, in the form of its kind. */
void connect_ask(struct call *c, int stream, void (*run)(struct call *c, json_t *ask));

/* 0: the content type is not that of this kind; 415 was sent. For callers that read a stream of
 * requests. */
int connect_speaks(struct call *c, int stream);

/* One answer. */
void connect_reply(struct call *c, json_t *take_doc);
/* One answer to a stream of requests, and its end. */
void connect_stream_reply(struct call *c, const char *json);
/* Sends an error instead of the answer, or in a stream that has not started: 200 and an end
 * envelope. */
void connect_fail(struct call *c, enum connect_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* By the kind of e: ERR_NOT_FOUND is not_found, and so on. */
void connect_fail_err(struct call *c, const struct err *e);

/* A stream of answers. Its owner must call one of connect_end(), connect_end_error(),
 * connect_cut(), or connect_drop() when the client has disconnected (c->drop). */
struct connect_stream {
	struct call *call;
	struct timer idle;
	uint64_t idle_ms;
	const char *keepalive; /* sent when no other message was sent for a while */
};
void connect_open(struct connect_stream *s, struct call *c, const char *keepalive_json);
int connect_send(struct connect_stream *s, json_t *take_doc); /* 1: full, wait for on_drain */
int connect_send_text(struct connect_stream *s, const char *json, size_t n); /* the same */
/* JSON that is these two texts with bytes as base64 between them. */
int connect_send_bytes(struct connect_stream *s, const char *before, const void *bytes, size_t n,
		       const char *behind);
void connect_end(struct connect_stream *s);
void connect_end_error(struct connect_stream *s, enum connect_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void connect_cut(
	struct connect_stream
		*s); /* the box has ended: the client must not treat the stream as complete */
void connect_drop(struct connect_stream *s); /* the client is gone */

/* A field of bytes: base64, padded or not. -1: it is not valid base64. */
must_check int connect_bytes(const json_t *text, struct buf *out);
uint64_t connect_timeout_ms(const struct call *c); /* Connect-Timeout-Ms; 0: none */
/* The user of the request, by Authorization: Basic; without it the user "user". -1: no such
 * user, and the error was sent. */
int connect_user(struct call *c, int *out_root);
