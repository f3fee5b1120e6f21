/* verbs.h - what an agent in a box may do: one table for its parser, its hands and its prompt.
 * Owns: nothing. Names and arguments are those of src/tools/tools.c, as far as they go. */
#pragma once
#include <jansson.h>
#include <stdint.h>

enum verb { VERB_READ, VERB_WRITE, VERB_LIST, VERB_EDIT, VERB_RUN, VERB_COUNT };

enum verb_type { ARG_TEXT, ARG_INT, ARG_FLAG };
struct verb_arg {
	const char *name;
	enum verb_type type;
	int required;
	int64_t least, most; /* ARG_INT */
	const char *help;
};

enum { VERB_ARGS = 5 };
struct verb_row {
	const char *name, *alias; /* alias: NULL, or the same under another name */
	const char *help;
	struct verb_arg args[VERB_ARGS]; /* up to one without a name */
};
extern const struct verb_row verbs[VERB_COUNT];

/* By either name; -1: there is none. */
int verb_named(const char *name);
