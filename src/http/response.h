/* response.h - parses an answer with llhttp, for clients.
 * Owns: the text of the head, in which the headers are. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "http/client.h"

#include <llhttp.h>

struct response {
	llhttp_t parser;
	struct http_answer *out;
	struct buf text; /* names and values, each followed by a NUL */
	uint32_t begin;  /* of the header in progress */
	struct header_at {
		uint32_t name, value;
	} at[128];
	struct http_header headers[128];
	int head_only; /* the question was HEAD */
	int head_done, done, keep_alive;
	unsigned interim; /* answers before the final one */
	int ended;        /* the caller has ended the call */
	int (*on_head)(void *user, const struct http_answer *a);
	int (*on_body)(void *user, const char *bytes, size_t n);
	void *user;
	uint32_t body_max;
	const char *why;
};

void response_init(struct response *a, struct http_answer *out);
void response_fini(struct response *a);
/* Bytes used, or -1 with a->why; a->done and a->ended are set when the answer is complete. */
ssize_t response_feed(struct response *a, const char *bytes, size_t n);
/* The peer has closed: 0 if this ends the answer. */
int response_end(struct response *a);
