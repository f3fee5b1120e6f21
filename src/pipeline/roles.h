/* roles.h - planner, coder and debugger by a model: prompts, and validation of the answers.
 * Owns: the request in progress and, if it is repeated, the second one.
 *
 *   document ─► prompt ─► model ─► stop reason ─► strict parse ─► schema ─► what it means ─► document
 *                           ▲                                        │ wrong: once more, with the place
 *                           └────────────────────────────────────────┘
 * An answer is untrusted data. Prompts start with the same bytes for all requests (cached by
 * providers); text of users, programs and files follows between marks, as data. */
#pragma once
#include "document/document.h"
#include "llm/llm.h"

struct roles_ask;
struct roles_owner {
	/* NULL, or called for every answer of a model, valid or not: {type: "model_call", role,
	 * model, usage, ms, route, why, outcome}. */
	void (*called)(struct roles_owner *o, const json_t *event);
	/* Called once, never from within a call. doc: a plan; an artifact with its hash; a
	 * diagnosis whose new_artifact is hashed and different; NULL: e has the reason. usage: of
	 * all calls, also on failure. doc.why names the model and the reason for its choice. */
	void (*done)(struct roles_owner *o, json_t *take_doc, const json_t *usage,
		     const struct err *e);
};

/* Is there a model for "planner", "coder", "debugger"? line may be NULL. */
int roles_has(const struct llm_client *line, const char *role);

/* All of them end with done(); line is not NULL. The documents must stay unchanged until then. */
struct roles_ask *roles_plan(struct llm_client *line, const json_t *task, struct roles_owner *o);
struct roles_ask *roles_code(struct llm_client *line, const json_t *plan, struct roles_owner *o);
/* before: the diagnoses so far, an array, or NULL. level: see roles_level(). */
struct roles_ask *roles_debug(struct llm_client *line, const json_t *plan, const json_t *artifact,
			      const json_t *result, const json_t *before, unsigned level,
			      struct roles_owner *o);
void roles_cancel(struct roles_ask *x); /* done is not called; the client counts the cost */

/* Which debugger model: 0, the first of its role; 1, the next one: for a repeated category or a
 * hard one (wrong_output, unknown). now: the heuristic diagnosis, or NULL. why: a static string. */
unsigned roles_level(const json_t *before, const json_t *now, const char **out_why);
