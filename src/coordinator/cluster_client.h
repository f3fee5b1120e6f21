/* cluster_client.h - the server's client of the cluster process (process.h): numbered requests over a stream of JSON.
 * Owns: the connection, the requests in progress. A request is sent once. When the process ends, or does not answer in
 * time, its effect is unknown (ERR_SYS), and the caller decides whether to send it again. */
#pragma once
#include "base/err.h"
#include "loop/loop.h"
#include <jansson.h>

enum { CLUSTER_REQUESTS = 8192, CLUSTER_ANSWER_MS = 5000 };

struct cluster_client;

struct cluster_request { /* memory of the caller, zeroed; valid until done() or cluster_client_cancel() */
	/* Called once, never from within a call. answer is valid during the call. e: NULL, or why there is none. */
	void (*done)(struct cluster_request *r, const json_t *answer, const struct err *e);
	struct cluster_request *next;
	struct cluster_client *client; /* NULL: not in progress */
	uint64_t number;
	json_t *message; /* until it was sent */
	uint64_t until_ms;
};

/* need_line(user): requests a connection; cluster_client_connect() follows, perhaps never. */
must_check int cluster_client_new(struct cluster_client **out, struct loop *l,
				  void (*need_line)(void *user), void *user, struct err *e);
void cluster_client_free(struct cluster_client *x); /* done() is not called; allowed on NULL */
void cluster_client_connect(struct cluster_client *x, int take_fd);
/* message: {"join": {...}} and so on, see process.h. Above CLUSTER_REQUESTS in progress it ends with ERR_LIMIT. */
void cluster_client_send(struct cluster_client *x, struct cluster_request *r, json_t *take_message);
/* send_first(user): called before each request, and may send others, which the cluster process reads first. NULL: nothing. */
void cluster_client_before(struct cluster_client *x, void (*send_first)(void *user), void *user);
void cluster_client_cancel(struct cluster_request *r); /* also if it has ended or was never sent */
