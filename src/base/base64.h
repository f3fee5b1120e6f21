/* base64.h - bytes as text and back (RFC 4648, with padding). */
#pragma once
#include "base/buf.h"

void base64_encode(struct buf *out, const void *bytes, size_t n);
/* -1: not the whole text is base64; out then has the bytes before the error. */
int base64_decode(struct buf *out, const char *text, size_t n);
