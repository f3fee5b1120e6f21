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

enum { MODEL_ASKS = 64, MODEL_WAIT_MS = 10000 }; /* at once; for a line, when there is none */

struct model_line;
struct model_ask { /* of the caller, zeroed; alive until done() or model_cancel() */
	struct model_ask *next;
	struct model_line *line;
	uint64_t number;
	/* NULL, or: pieces as they come, {type: "text", text}, {type: "call", n, id?, name?, arguments},
	 * {type: "retry", why, wait_ms}: what came before it is void. */
	void (*said)(struct model_ask *a, const json_t *event);
	/* Once, never from within. e: NULL, or what went wrong; answer has usage in either case. */
	void (*done)(struct model_ask *a, const json_t *answer, const struct err *e);
	json_t *request; /* the line's, until the process has taken it */
	uint64_t since_ms;
};

/* need_line(user): bring one; model_line_connect() follows, perhaps never. First called from the loop. */
must_check int model_line_new(struct model_line **out, struct loop *l, void (*need_line)(void *user),
			      void *user, struct err *e);
void model_line_free(struct model_line *x); /* nobody asks any more; fine on NULL */
void model_line_connect(struct model_line *x, int take_fd);

/* All of these take NULL for "no model is configured". */
struct loop *model_loop(const struct model_line *x);
/* Which roles somebody is there for: {planner: ["small"], ...}; NULL: nobody, or not yet. */
const json_t *model_roles(const struct model_line *x);
/* {models: [{id, name, provider, dialect, price}], roles}; NULL: as above. */
const json_t *model_book(const struct model_line *x);
/* {model: {asked, failed, calls, in, out, cache_read, cache_write, cost}} since this front began. */
const json_t *model_figures(const struct model_line *x);

/* The request is one of docs/pipeline.md. -1: nobody to ask, too many ask, or it is no question. */
must_check int model_start(struct model_line *x, struct model_ask *a, json_t *take_request, struct err *e);
void model_cancel(struct model_ask *a); /* fine on one that is over, or was never started */
