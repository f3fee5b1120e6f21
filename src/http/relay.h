/* relay.h - forwards a request to another server and its answer to the client.
 * Owns:         the exchange with that server, from a connection to the end of the answer.
 * Does not own: the request; its owner calls relay_free() in on_over() at the latest.
 *
 *   client  ── head written anew, body as it comes ──►  server
 *           ◄── head written anew, body as it comes ──
 *
 * Both heads are written anew: names and values are copied, except the headers that concern one
 * connection (RFC 9110, 7.6.1), and each side gets its own framing of the body. So bytes of one
 * side cannot become a second request or answer on the other. A slow reader slows the sender
 * down. An answer that the server did not finish is cut, not ended. */
#pragma once
#include "http/http.h"
#include "http/upstream_link.h"

#define RELAY_LATE "it did not answer in time" /* a reason of failed() */

struct http_answer;
struct relay_rules {
	const char *host;   /* for the server; NULL: as the client sent it */
	const char *target; /* for the server, a path with its query; NULL: as the client sent it */
	const char *extra;  /* header lines for the server, each with its "\r\n"; NULL: none */
	/* 1: a request with "Upgrade: tcp" is passed on as such. 0: without its Upgrade. */
	int passes_tcp;
	/* The value of a header for the server; NULL: the server does not get it. No function:
	 * unchanged. */
	const char *(*sends)(void *user, const struct http_header *h);
	/* The value of a header for the client; NULL: the client does not get it. No function:
	 * unchanged. */
	const char *(*returns)(void *user, const struct http_header *h);
	/* Looks at the head of an answer before the client gets a byte of it. Not NULL: the reason why
	 * the client does not get it; failed() follows. No function: the client gets every answer. */
	const char *(*judge)(void *user, const struct http_answer *a);
	/* No answer arrived, and nothing has been replied yet: the owner replies. */
	void (*failed)(void *user, const char *why);
	/* May an answer be taken for complete if only the end of the connection ends it? NULL:
	 * yes. */
	int (*close_is_complete)(void *user);
	/* The answer is complete and the server keeps the connection: for another request. NULL:
	 * the request asks the server to close it. */
	void (*spare)(void *user, struct upstream_link take_link);
	void (*switched)(void *user); /* both sides use another protocol now; may be NULL */
	void *user;
	uint32_t head_ms; /* for the server to answer */
};

struct relay;
/* Sends the request at once; the body follows by the functions below. rules are copied; the texts
 * in them are used only during this call. */
struct relay *relay_new(struct http_req *r, struct loop *l, struct upstream_link take_link,
			const struct relay_rules *rules);
/* For a request that http_switch() has answered: bytes without HTTP, both ways. */
struct relay *relay_new_raw(struct http_req *r, struct loop *l, struct upstream_link take_link);
void relay_free(struct relay *x); /* fine on NULL */

/* Call these from on_body, on_body_end and on_drain of the request. */
void relay_body(struct relay *x, const char *bytes, size_t n);
void relay_body_end(struct relay *x);
void relay_drain(struct relay *x);
