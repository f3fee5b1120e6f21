/* expand.h - variables in the words of a definition: $NAME, ${NAME}, ${NAME:-x}, ${NAME-x}, ${NAME:+x}, ${NAME+x},
 * ${NAME:?x}, ${NAME?x}. The parser of a Dockerfile removes quotes and leaves the variables (expand_word()); the build
 * replaces them, when it knows the environment of the image (expand_text()).
 *
 * In the text of a definition a backslash escapes only a dollar, a backslash and, within ${}, a closing brace. Every
 * other character stands for itself, quotes as well. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

enum { EXPAND_BYTES = 64 << 10, EXPAND_DEPTH = 16, EXPAND_NAME = 128 };

/* The value of a variable, or NULL. */
typedef const char *expand_lookup(void *ctx, const char *name);

/* Appends the text with its variables replaced; one that is not set is empty. ERR_INVALID: the syntax, or a ${NAME:?x}
 * that is not set. ERR_LIMIT: the result is longer than EXPAND_BYTES. look NULL: only the syntax is checked. */
must_check int expand_text(struct buf *out, const char *text, expand_lookup *look, void *ctx,
			   struct err *e);
/* Appends text that expands to these bytes. */
void expand_quote(struct buf *out, const char *literal);
/* Appends a word of a Dockerfile as text of a definition: quotes and escapes are resolved, variables stay. */
must_check int expand_word(struct buf *out, const char *word, char escape, struct err *e);

/* May it be the name of a variable: a letter or _, then letters, digits and _. */
int expand_is_name(const char *name);
