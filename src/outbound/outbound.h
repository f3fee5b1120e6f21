/* outbound.h - the server's client of the outbound process, which sends HTTP requests and mails.
 * Owns: the connection, the requests in progress.
 * Does not own: retries. A request is sent once: when the process ends, requests that it had end
 * with an error, and the caller decides whether to send them again. */
#pragma once
#include "base/err.h"
#include "loop/loop.h"
#include "outbound/message.h"

enum { OUTBOUND_REQUESTS = 256, OUTBOUND_WAIT_MS = 10000 }; /* in progress; wait for the process */

struct outbound;

struct outbound_answer {
	int status; /* of HTTP or SMTP: every status is an answer, redirects are not followed */
	const char *body; /* its first OUTBOUND_ANSWER bytes, as UTF-8 without NUL */
	int cut;          /* there was more */
	uint32_t took_ms;
};

struct outbound_request { /* memory of the caller, zeroed; valid until done() or outbound_cancel() */
	/* Called once, never from within a call. e: NULL, or why there is no answer: ERR_INVALID
	 * for a target that may not be reached; then a is NULL. It may send the request again. */
	void (*done)(struct outbound_request *r, const struct outbound_answer *a,
		     const struct err *e);
	struct outbound_request *next;
	struct outbound *client; /* NULL: not in progress */
	uint64_t number;
	json_t *message; /* until it was sent */
	uint64_t since_ms;
};

/* need_line(user): requests a connection, when there is a request to send; outbound_connect()
 * follows, perhaps never. */
must_check int outbound_new(struct outbound **out, struct loop *l, void (*need_line)(void *user),
			    void *user, struct err *e);
void outbound_free(struct outbound *x); /* done() is not called; allowed on NULL */
void outbound_connect(struct outbound *x, int take_fd);
/* m is copied. ERR_INVALID: not a message that can be sent; ERR_LIMIT: too many are in progress. */
must_check int outbound_send(struct outbound *x, struct outbound_request *r,
			     const struct outbound_message *m, struct err *e);
void outbound_cancel(struct outbound_request *r); /* also if it has ended or was never sent */
