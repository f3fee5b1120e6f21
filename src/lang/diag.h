/* diag.h - what compilers and dying programs say, as data.
 * Reads foreign text: bounded in bytes, lines and results, and believed no further. */
#pragma once
#include "base/buf.h"
#include "lang/lang.h"
#include <jansson.h>

enum { DIAG_BYTES = 32 * 1024 }; /* more of a text is not looked at */

/* Of a compiler: [{file, line, column, severity, message}], null where it does not say. NULL: there
 * is none that the row's patterns know. */
json_t *diag_errors(const struct lang *l, const char *text, size_t len);
/* Of a program that failed: {type, message, file, line}; NULL: it did not say. */
json_t *diag_fault(const struct lang *l, const char *text, size_t len);

/* Keeps the beginning of what a compiler says, and the end of what a program says. */
void diag_head(struct buf *kept, const char *bytes, size_t n);
void diag_tail(struct buf *kept, const char *bytes, size_t n);
