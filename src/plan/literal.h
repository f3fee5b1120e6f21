/* literal.h - a value as a language writes it down. Whatever is in a text, it stays in its quotes. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <jansson.h>

struct lang;

enum literal_as {
	LITERAL_WHOLE, /* [3, 1, 2], "a\"b", 3 */
	LITERAL_ITEMS, /* 3, 1, 2: without what is around a list */
};

/* real: numbers of a list are reals where a language tells them from whole ones. -1: the language cannot
 * write that down (a NUL in a text, for some), or is not one of ours. */
must_check int literal_add(struct buf *out, const struct lang *l, const json_t *value, int real,
			   enum literal_as as, struct err *e);
