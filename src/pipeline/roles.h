/* roles.h - planner, coder and debugger by a model: what it is asked, and what of its answer is believed.
 * Owns: the question under way and, when it has to be asked again, the second one.
 *
 *   document ─► prompt ─► model ─► stop reason ─► strict parse ─► schema ─► what it means ─► document
 *                           ▲                                        │ wrong: once more, with the place
 *                           └────────────────────────────────────────┘
 * An answer is data from a stranger. Prompts begin with the same bytes for all (cached by providers);
 * what was typed, printed or read is put behind them, between marks, as data. */
#pragma once
#include "document/document.h"
#include "llm/llm.h"

struct roles_ask;
struct roles_owner {
	/* NULL, or: every answer of a model, good or not: {type: "model_call", role, model, usage, ms, route,
	 * why, outcome}. */
	void (*called)(struct roles_owner *o, const json_t *event);
	/* Once, never from within. doc: a plan; an artifact, sealed; a diagnosis, its new_artifact sealed and
	 * different; NULL: e says why not. usage: of all calls, also when it failed. doc.why says who was
	 * asked and why. */
	void (*done)(struct roles_owner *o, json_t *take_doc, const json_t *usage,
		     const struct err *e);
};

/* A model is there for "planner", "coder", "debugger". line: NULL is fine. */
int roles_has(const struct llm_client *line, const char *role);

/* All come to done(), whatever happens; line: not NULL. What is given is kept until then, and not changed. */
struct roles_ask *roles_plan(struct llm_client *line, const json_t *task, struct roles_owner *o);
struct roles_ask *roles_code(struct llm_client *line, const json_t *plan, struct roles_owner *o);
/* before: the diagnoses so far, an array, or NULL. level: see roles_level(). */
struct roles_ask *roles_debug(struct llm_client *line, const json_t *plan, const json_t *artifact,
			      const json_t *result, const json_t *before, unsigned level,
			      struct roles_owner *o);
void roles_cancel(
	struct roles_ask *x); /* done is not called; what was paid is counted by the line */

/* Which debugger: 0, the first of its role; 1, the next one: the same category twice, or one that takes
 * thought (wrong_output, unknown). now: the heuristic diagnosis, or NULL. why: static text. */
unsigned roles_level(const json_t *before, const json_t *now, const char **out_why);
