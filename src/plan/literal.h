/* literal.h - values as literals of a language. Any content of a string stays inside its quotes. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <jansson.h>

struct lang;

enum literal_as {
	LITERAL_WHOLE, /* [3, 1, 2], "a\"b", 3 */
	LITERAL_ITEMS, /* 3, 1, 2: without brackets */
};

/* real: numbers of a list are reals where a language distinguishes them from integers. -1: the
 * language has no such literal (some have no NUL in strings), or is unknown. */
must_check int literal_add(struct buf *out, const struct lang *l, const json_t *value, int real,
			   enum literal_as as, struct err *e);
