/* script.h - a model that says what it was told to say: for tests, in builds with test hooks only.
 * Owns: a copy of the replies, the one that is on its way. */
#pragma once
#include "base/err.h"
#include "loop/loop.h"
#include <jansson.h>

struct script;
typedef void script_done_fn(void *user, const json_t *answer, const struct err *e);

/* replies: [text | {text, usage, error, never}]. NULL where there are none, or no hooks. */
struct script *script_new(struct loop *l, const json_t *replies);
must_check int script_start(struct script *s, json_t *take_request, script_done_fn *done, void *user,
			    struct err *e);
void script_cancel(struct script *s);
void script_free(struct script *s);
