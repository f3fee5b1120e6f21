/* reply.h - an answer as it arrives: text, tool calls, usage, the stop reason.
 * Owns: all of it. Bounded: an answer over the limit is ended. */
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
	int estimated; /* some of it was not reported and is estimated by bytes */
};
void usage_add(struct usage *to, const struct usage *u);
json_t *usage_json(const struct usage *u);
void usage_add_json(struct usage *to,
		    const json_t *u); /* requests of this answer; 0 counts as one */

struct reply_call {
	int64_t slot; /* its index in the stream */
	char *id, *name;
	struct buf arguments;
	int whole; /* arguments are complete; parts that follow replace them */
};

struct reply_error { /* the error of the provider */
	char type[64], msg[200];
	int status; /* its numeric code, or 0 */
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
	int complete; /* the stream has reported its end */
	int failed;
	struct reply_error error;
	/* NULL, or called for each part: {type: "text", text} or {type: "call", n, id?, name?,
	 * arguments}. */
	void (*said)(void *ctx, json_t *take_event);
	void *ctx;
};

/* -1: over the limit. */
must_check int reply_text(struct reply *r, const char *text, size_t n, struct err *e);
/* The call of this index; created if new. id, name: NULL or known values. */
struct reply_call *reply_call(struct reply *r, int64_t slot, const char *id, const char *name,
			      struct err *e);
must_check int reply_arguments(struct reply *r, struct reply_call *c, const char *piece, size_t n,
			       struct err *e);
void reply_fail(struct reply *r, const char *type, const char *msg, int status);
/* Parses the body of an error status: every known format, or the text itself. */
void reply_fail_body(struct reply *r, int status, const char *body, size_t n);
/* [{id, name, arguments: object}]; arguments that are not an object are {..., arguments: null, raw:
 * text}. */
json_t *reply_calls(const struct reply *r);
void reply_fini(struct reply *r); /* fine on a zeroed one */
