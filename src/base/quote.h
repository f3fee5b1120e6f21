/* quote.h - text as a JSON string. */
#pragma once
#include "base/buf.h"

/* Appends n bytes of UTF-8 with their quotes, in the form of RFC 8785: nothing is escaped that need not be. */
void quote_json(struct buf *out, const char *text, size_t n);
