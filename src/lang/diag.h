/* diag.h - errors of compilers and failed programs, as data. Parses untrusted text: bounded in
 * bytes, lines and results, and not trusted further. */
#pragma once
#include "base/buf.h"
#include "lang/lang.h"
#include <jansson.h>

enum { DIAG_BYTES = 32 * 1024 }; /* the rest of a text is not examined */

/* Of a compiler: [{file, line, column, severity, message}], with null for unknown values. NULL: no
 * pattern of the row matches. */
json_t *diag_errors(const struct lang *l, const char *text, size_t len);
/* Of a failed program: {type, message, file, line}; NULL: nothing found. */
json_t *diag_fault(const struct lang *l, const char *text, size_t len);

/* Keeps the beginning of compiler output and the end of program output. */
void diag_head(struct buf *kept, const char *bytes, size_t n);
void diag_tail(struct buf *kept, const char *bytes, size_t n);
