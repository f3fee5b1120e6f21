/* interpreter.h - port 49999 of a box: cells, as E2B's code interpreter takes them.
 * Owns:         the names of languages and contexts that its clients use.
 * Does not own: contexts and cells; those are fleet's, and /v1 sees the same ones.
 *
 * A context that a language has without being asked (python and javascript at least) goes by the name of
 * its language, whether its interpreter runs yet or not. All others have the ids that /v1 shows. */
#pragma once
#include "e2b/e2b.h"

struct context;

/* What we call a language of theirs: "js" is "node". In any case, with spaces around; "" is python. Text
 * of the call where we have no other name for it. */
const char *interpreter_language(struct call *c, const char *theirs);
/* The one that answers to this id; NULL: nobody does, and that was answered. *out_language: it is the
 * default one of that language, and perhaps not there yet: then NULL is returned, and nothing said. */
struct context *interpreter_find(struct call *c, const char *id, const char **out_language);
/* The default one of a language, made at its first use, revived when it died; NULL: answered. */
struct context *interpreter_default(struct call *c, const char *language);
int interpreter_alive(struct call *c, struct context *x); /* 0: it cannot be revived; answered */

/* execute.c */
extern const struct field execute_fields[];
void execute(struct call *c);

/* lines.c: what is told of an execution, one JSON object each; the caller's. */
struct cell_piece;
json_t *exec_events_output(
	struct cell_piece *p); /* may leave the last bytes for later; NULL: all of them */
json_t *exec_events_result(const char *text,
			   size_t n); /* NULL: it is of a kind that they do not know */
json_t *exec_events_error(const char *name, const char *value);
