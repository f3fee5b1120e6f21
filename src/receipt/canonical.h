/* canonical.h - JSON with exactly one form for each value (RFC 8785), so that it can be hashed.
 * Members are sorted by the UTF-16 code units of their names, there is no white space, a number has its shortest
 * form, and only the characters that must be escaped are. Integers have up to 64 bits and are not rounded to a
 * double, as RFC 8785 does beyond 2^53.
 * Owns: nothing. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <jansson.h>

void canonical_write(struct buf *out, const json_t *value);
/* Parses JSON that must be in this form already. A member that occurs twice, another order or form of anything is
 * ERR_INVALID. NULL: e. */
json_t *canonical_parse(const char *text, size_t n, struct err *e);
