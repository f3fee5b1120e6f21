/* llm.h - the server's client of the LLM process (docs/pipeline.md).
 * Owns: the connection, the requests in progress, the counters.
 * Does not own: keys, prices, retries (llm/process.h, in its own process).
 *
 * The process may exit and be replaced: requests that the old one had accepted end with a retriable
 * error (answer.error.retriable), the others wait for the new process. */
#pragma once
#include "base/err.h"
#include "loop/loop.h"
#include "trace/trace.h"
#include <jansson.h>

enum { LLM_REQUESTS = 64, LLM_WAIT_MS = 10000 }; /* in progress; wait for a connection */

struct llm_client;
struct llm_request { /* memory of the caller, zeroed; valid until done() or llm_cancel() */
	struct llm_request *next;
	struct llm_client *line;
	uint64_t number;
	/* NULL, or called for parts of the answer: {type: "text", text}, {type: "call", n, id?,
	 * name?, arguments}, {type: "retry", why, wait_ms}, which invalidates all earlier parts. */
	void (*said)(struct llm_request *a, const json_t *event);
	/* Called once, never from within a call. e: NULL, or the error; answer has usage in both
	 * cases. */
	void (*done)(struct llm_request *a, const json_t *answer, const struct err *e);
	json_t *request; /* owned by the client until the process has accepted it */
	uint64_t since_ms;
	struct trace_context trace; /* of the request: below trace_current() of llm_start() */
	int64_t trace_ns;
};

/* need_line(user): requests a connection; llm_client_connect() follows, perhaps never. First called
 * from the loop. */
must_check int llm_client_new(struct llm_client **out, struct loop *l,
			      void (*need_line)(void *user), void *user, struct err *e);
void llm_client_free(struct llm_client *x); /* no request may be in progress; allowed on NULL */
void llm_client_connect(struct llm_client *x, int take_fd);

/* All of these accept NULL, which means that no model is configured. */
struct loop *llm_loop(const struct llm_client *x);
/* The roles with their models: {planner: ["small"], ...}; NULL: none, or not known yet. */
const json_t *llm_roles(const struct llm_client *x);
/* {models: [{id, name, provider, dialect, price}], roles}; NULL: as above. */
const json_t *llm_models(const struct llm_client *x);
/* {model: {asked, failed, calls, in, out, cache_read, cache_write, cost}} since this server
 * started. */
const json_t *llm_figures(const struct llm_client *x);

/* The request is described in docs/pipeline.md. -1: no model available, too many requests, or an
 * invalid one. */
must_check int llm_start(struct llm_client *x, struct llm_request *a, json_t *take_request,
			 struct err *e);
void llm_cancel(struct llm_request *a); /* also if it has ended or was never started */
