/* upstream.h - one request to an HTTP/1.1 server, over a connection that is open already, plain or
 * with TLS, on the loop.
 * Owns:         the connection, the unsent bytes of the request, the parser of the answer.
 * Does not own: the content of the request, and where the answer goes.
 *
 *   upstream_ask() -> upstream_body()... -> upstream_body_end()      the request
 *   head() -> body()... -> over()                                    the answer, at any time meanwhile
 *
 * The server is not trusted: an answer is complete, or over() gets the reason why it is not.
 * Memory is bounded by UPSTREAM_HIGH and one piece; a caller that got "full" waits for drain().
 * All callbacks come from the loop: no upstream_...() function calls back before it returns. One
 * request per struct; the owner may take the connection for another one, see spare. */
#pragma once
#include "http/response.h"
#include "http/upstream_link.h"
#include "loop/loop.h"

#include <sys/uio.h>

enum { UPSTREAM_HIGH = 64 << 10, UPSTREAM_PIECE = 64 << 10 };

struct upstream;
struct upstream_events {
	/* The head of the final answer, not of an interim one. Not NULL: the reason why it is
	 * rejected; over() follows. */
	const char *(*head)(struct upstream *u, const struct http_answer *a);
	void (*body)(struct upstream *u, const char *bytes, size_t n);
	void (*drain)(struct upstream *u); /* more of the request can be sent */
	/* The last callback, called once. why NULL: the answer is complete. The owner may close
	 * it here. */
	void (*over)(struct upstream *u, const char *why);
};

struct upstream {
	/* clang-format off */
	struct watch watch;
	struct timer clock;
	struct upstream_link link;  /* fd -1: closed */
	struct upstream_link spare; /* from over() on: the connection, ready for another request; fd -1: none */
	const struct upstream_events *on;
	struct response answer;
	struct http_answer got;
	const char *not_taken;
	struct buf out; /* of the request: bytes not yet sent, from out_at on */
	size_t out_at;
	uint32_t head_ms;
	uint64_t moved_ms; /* time at which the server last accepted bytes */
	unsigned chunked : 1;     /* the question's body */
	unsigned upgrade : 1;     /* it requests another protocol ... */
	unsigned raw : 1;         /* ... which is spoken now */
	unsigned until_close : 1; /* the answer ended with the connection and announced no length */
	unsigned paused : 1;
	unsigned full : 1;
	unsigned deaf : 1; /* the server reads no more of the request; there may be an answer */
	unsigned shut : 1; /* no more bytes will be written */
	unsigned shut_done : 1; /* and the end was sent */
	unsigned sent : 1; /* upstream_body_end(): the request is complete */
	/* of TLS */
	unsigned more : 1; /* there may be input that the descriptor does not show as readable */
	unsigned read_wants_write : 1;
	unsigned write_wants_read : 1;
	enum link_result ended; /* LINK_OK: not; else the result that follows the bytes read last */
	/* clang-format on */
};

/* head_ms: time for the server to answer, after the last byte of the request that it accepted. */
void upstream_init(struct upstream *u, struct loop *l, struct upstream_link take_link,
		   uint32_t head_ms, const struct upstream_events *on);
/* The same for bytes without HTTP: body() gets all of them, upstream_body() sends all. */
void upstream_init_raw(struct upstream *u, struct loop *l, struct upstream_link take_link,
		       const struct upstream_events *on);
struct upstream_question {
	const char *head; /* from the request line to the empty line */
	size_t len;
	int chunked; /* its body is sent chunked; else pieces are sent unchanged */
	int no_body; /* HEAD: of the answer */
	int upgrade; /* 101 is an answer: bytes follow, both ways, by body() and upstream_body() */
};
void upstream_ask(struct upstream *u, const struct upstream_question *q);
int upstream_body(struct upstream *u, const char *bytes, size_t n); /* 1: full */
void upstream_body_end(struct upstream *u);
void upstream_shut(struct upstream *u); /* after a 101: this side sends nothing more */
void upstream_pause(struct upstream *u, int paused);
void upstream_close(struct upstream *u); /* calls no callback; allowed on a zeroed or closed one */
