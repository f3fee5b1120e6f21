/* relay.h - a request of ours, answered by another server.
 * Owns:         the exchange with that server, from a connection to the end of the answer.
 * Does not own: the request; its owner calls relay_free() in on_over() at the latest.
 *
 *   client  ── head written anew, body as it comes ──►  server
 *           ◄── head written anew, body as it comes ──
 *
 * Nothing of either head is copied as it stands: names and values are, those that concern one
 * connection are not (RFC 9110, 7.6.1), and how long a body is, each side says in its own words. So
 * what one side sends cannot become another request or answer on the other. Who is slow slows
 * the one at the other end down. An answer that the server did not finish is cut, not ended. */
#pragma once
#include "http/http.h"

struct relay_rules {
	const char *host; /* for the server; NULL: as the client said */
	/* 0: the server must not see this header. NULL: it may see all. */
	int (*passes)(void *user, const struct http_header *h);
	/* The value of a header for the client; NULL: it must not see it. NULL: as the server said. */
	const char *(*returns)(void *user, const struct http_header *h);
	/* There is no answer, and nothing has been replied yet: that is for the owner to do. */
	void (*failed)(void *user, const char *why);
	/* An answer of which only the end of the connection says that it is over: can that be? NULL: yes. */
	int (*believes)(void *user);
	void (*switched)(void *user); /* both speak another protocol now; may be NULL */
	void *user;
	uint32_t head_ms; /* for the server to answer */
};

struct relay;
/* Asks at once; the body follows by the functions below. */
struct relay *relay_new(struct http_req *r, struct loop *l, int take_fd,
			const struct relay_rules *rules);
void relay_free(struct relay *x); /* fine on NULL */

/* The request's on_body, on_body_end, on_drain are to call these. */
void relay_body(struct relay *x, const char *bytes, size_t n);
void relay_body_end(struct relay *x);
void relay_drain(struct relay *x);
