/* client.h - a blocking HTTP/1.1 client: one request at a time.
 * Owns:         one connection, kept for the next request.
 * Does not own: what the caller sends and where the answer goes. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "http/http.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct http_client;

struct http_client_options {    /* 0, NULL: the default in parentheses */
	const char *ca_file;    /* for https (the machine's own list) */
	struct ssl_ctx_st *tls; /* the same as a context, which is borrowed (made from ca_file) */
	uint32_t connect_ms;    /* per address (10 s) */
	uint32_t stall_ms;      /* longest time without a byte from or to the peer (no limit) */
	uint32_t body_max;      /* of an answer that is collected (64 MiB) */
};

struct http_answer {
	int status;
	uint64_t length;                   /* of the body as announced; UINT64_MAX: not announced */
	const struct http_header *headers; /* names in lower case; valid until the next call */
	unsigned nheaders;
	struct buf body; /* set if there was no on_body */
};
const char *http_answer_header(const struct http_answer *a, const char *lower_name); /* or NULL */
void http_answer_fini(struct http_answer *a);

struct http_call {
	const char *method;
	const char *target; /* "/v1/boxes?limit=3", appended to the path of the base address */
	const struct http_header *headers;
	unsigned nheaders;
	/* The body: bytes, or a descriptor read to its end, or a function, or none. */
	const void *body;
	size_t body_len;
	const int *body_fd;
	ssize_t (*more)(void *user, void *out, size_t room, struct err *e); /* 0: the end; -1 */
	/* The answer: its head when it is complete, then its body in pieces. A result other than
	 * 0 ends the call and closes the connection; http_call() then returns 1. */
	int (*on_head)(void *user, const struct http_answer *a);
	int (*on_body)(void *user, const char *bytes, size_t n);
	void *user;
};

must_check int http_client_new(const char *base, const struct http_client_options *o,
			       struct http_client **out_client, struct err *e);
void http_client_free(struct http_client *c);
/* 0: answered, with any status. 1: ended by on_head or on_body. -1: no complete answer. */
must_check int http_call(struct http_client *c, const struct http_call *call,
			 struct http_answer *out, struct err *e);
