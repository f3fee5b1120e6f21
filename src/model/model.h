/* model.h - the front's end of the line to the process that asks models (docs/pipeline.md).
 * Owns:         the line, the questions under way.
 * Does not own: keys, prices, retries (model/, in its own process). */
#pragma once
#include "base/err.h"
#include "loop/loop.h"
#include <jansson.h>

struct model_line;
struct model_ask { /* of the caller, zeroed; alive until done() or model_cancel() */
	struct model_ask *next;
	struct model_line *line;
	uint64_t number;
	/* NULL, or: pieces as they come, {type: "text"|"call"|"retry", ...}. */
	void (*said)(struct model_ask *a, const json_t *event);
	/* Once, never from within. e: NULL, or what went wrong; answer has usage in either case. */
	void (*done)(struct model_ask *a, const json_t *answer, const struct err *e);
};

/* need_line(user): bring one; model_line_connect() follows, perhaps never. */
must_check int model_line_new(struct model_line **out, struct loop *l, void (*need_line)(void *user),
			      void *user, struct err *e);
void model_line_free(struct model_line *x);
void model_line_connect(struct model_line *x, int take_fd);
/* Which roles somebody is there for: {planner: ["small"], ...}; NULL: no model is configured. */
const json_t *model_roles(const struct model_line *x);

/* -1: nobody to ask, or it is no question. */
must_check int model_start(struct model_line *x, struct model_ask *a, json_t *take_request, struct err *e);
void model_cancel(struct model_ask *a);
