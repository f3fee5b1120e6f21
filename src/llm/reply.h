/* reply.h - an answer while it comes: text, calls, usage, the reason why it ended.
 * Owns: all of it. Bounded: a model that does not stop is stopped. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <jansson.h>
#include <stdint.h>

enum { REPLY_CALLS = 64, REPLY_MOST = 4 << 20 };

enum stop { STOP_NONE, STOP_END, STOP_LENGTH, STOP_TOOLS, STOP_REFUSAL, STOP_FILTER };
const char *stop_name(enum stop s); /* "end", ...; "" for none */

/* in: input that was neither read from a cache nor written to one. */
struct usage {
	uint64_t calls, in, out, cache_read, cache_write;
	double cost;
	int estimated; /* some of it was not told, and is counted by bytes */
};
void usage_add(struct usage *to, const struct usage *u);
json_t *usage_json(const struct usage *u);
void usage_add_json(struct usage *to,
		    const json_t *u); /* what an answer tells; nothing: one call */

struct reply_call {
	int64_t slot; /* its place in the stream */
	char *id, *name;
	struct buf arguments;
	int whole; /* arguments are all there; pieces that follow replace them */
};

struct reply_error { /* what the other side says is wrong */
	char type[64], msg[200];
	int status; /* from a number in it, or 0 */
};

struct reply {
	size_t most; /* bytes of text and arguments; 0: REPLY_MOST */
	size_t bytes;
	struct buf text;
	struct reply_call calls[REPLY_CALLS];
	unsigned ncalls;
	enum stop stop;
	struct usage usage;
	int told_usage;
	int complete; /* the stream said that this was all */
	int failed;
	struct reply_error error;
	/* NULL, or: each piece, {type: "text", text} or {type: "call", n, id?, name?, arguments}. */
	void (*said)(void *ctx, json_t *take_event);
	void *ctx;
};

/* -1: more than it may be. */
must_check int reply_text(struct reply *r, const char *text, size_t n, struct err *e);
/* The call in this place; made if it is new. id, name: NULL or what is known of it now. */
struct reply_call *reply_call(struct reply *r, int64_t slot, const char *id, const char *name,
			      struct err *e);
must_check int reply_arguments(struct reply *r, struct reply_call *c, const char *piece, size_t n,
			       struct err *e);
void reply_fail(struct reply *r, const char *type, const char *msg, int status);
/* What is in a body of another status than 200: every form that is known, or the text itself. */
void reply_fail_body(struct reply *r, int status, const char *body, size_t n);
/* [{id, name, arguments: object}]; what is no object is {..., arguments: null, raw: text}. */
json_t *reply_calls(const struct reply *r);
void reply_fini(struct reply *r); /* fine on a zeroed one */
