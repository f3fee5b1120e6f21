/* interpreter.h - port 49999 of a box: cells, as E2B's code interpreter takes them.
 * Owns:         the names of languages and contexts that its clients use.
 * Does not own: contexts and cells; those belong to fleet, and /v1 sees the same ones.
 *
 * The default context of a language (python and javascript at least) has the name of its
 * language as its id, whether its interpreter runs yet or not. All others have the ids that /v1
 * shows. */
#pragma once
#include "e2b/e2b.h"

struct context;

/* Atoll's name for E2B's name of a language: "js" is "node". Case and spaces around it do not
 * matter; "" is python. Text of the call where Atoll has no other name for it. */
const char *interpreter_language(struct call *c, const char *theirs);
/* The context with this id; NULL: there is none, and that was answered. *out_language: it is the
 * default one of that language, and may not exist yet: then NULL is returned, and nothing was
 * answered. */
struct context *interpreter_find(struct call *c, const char *id, const char **out_language);
/* The default context of a language, created at its first use, restarted when it ended; NULL:
 * answered. */
struct context *interpreter_default(struct call *c, const char *language);
int interpreter_alive(struct call *c,
		      struct context *x); /* 0: it cannot be restarted, and the error was sent */

/* execute.c */
extern const struct field execute_fields[];
void execute(struct call *c);

/* exec_events.c: the events of an execution, one JSON object each; the caller frees it. */
struct cell_piece;
json_t *exec_events_output(
	struct cell_piece *p); /* may leave the last bytes for later; NULL: all of them */
json_t *exec_events_result(const char *text,
			   size_t n); /* NULL: a type that E2B's clients do not know */
json_t *exec_events_error(const char *name, const char *value);
