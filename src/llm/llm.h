/* llm.h - the front's end of the line to the process that asks models (docs/pipeline.md).
 * Owns:         the line, the questions under way, the figures.
 * Does not own: keys, prices, retries (llm/process.h, in its own process).
 *
 * The process may end and another one take its place: what was asked of the old one ends with an error
 * that says so (answer.error.retriable), what it had not yet taken waits for the new one. */
#pragma once
#include "base/err.h"
#include "loop/loop.h"
#include <jansson.h>

enum { LLM_REQUESTS = 64, LLM_WAIT_MS = 10000 }; /* at once; for a line, when there is none */

struct llm_client;
struct llm_request { /* of the caller, zeroed; alive until done() or llm_cancel() */
	struct llm_request *next;
	struct llm_client *line;
	uint64_t number;
	/* NULL, or: pieces as they come, {type: "text", text}, {type: "call", n, id?, name?, arguments},
	 * {type: "retry", why, wait_ms}: what came before it is void. */
	void (*said)(struct llm_request *a, const json_t *event);
	/* Once, never from within. e: NULL, or what went wrong; answer has usage in either case. */
	void (*done)(struct llm_request *a, const json_t *answer, const struct err *e);
	json_t *request; /* the line's, until the process has taken it */
	uint64_t since_ms;
};

/* need_line(user): bring one; llm_client_connect() follows, perhaps never. First called from the loop. */
must_check int llm_client_new(struct llm_client **out, struct loop *l,
			      void (*need_line)(void *user), void *user, struct err *e);
void llm_client_free(struct llm_client *x); /* nobody asks any more; fine on NULL */
void llm_client_connect(struct llm_client *x, int take_fd);

/* All of these take NULL for "no model is configured". */
struct loop *llm_loop(const struct llm_client *x);
/* Which roles somebody is there for: {planner: ["small"], ...}; NULL: nobody, or not yet. */
const json_t *llm_roles(const struct llm_client *x);
/* {models: [{id, name, provider, dialect, price}], roles}; NULL: as above. */
const json_t *llm_models(const struct llm_client *x);
/* {model: {asked, failed, calls, in, out, cache_read, cache_write, cost}} since this front began. */
const json_t *llm_figures(const struct llm_client *x);

/* The request is one of docs/pipeline.md. -1: nobody to ask, too many ask, or it is no question. */
must_check int llm_start(struct llm_client *x, struct llm_request *a, json_t *take_request,
			 struct err *e);
void llm_cancel(struct llm_request *a); /* fine on one that is over, or was never started */
