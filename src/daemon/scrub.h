/* scrub.h - removes what may be a secret from a text that is sent to other people. Prefers removing too much.
 * Pure, for unit tests. */
#pragma once
#include "base/buf.h"

#define SCRUB_MARK "[removed]"

/* Appends the text without:
 *   - the given values (NULL-terminated; values of less than 4 bytes are ignored)
 *   - user and password of a URL
 *   - the value after a name that contains key, token, secret, password, authorization, cookie, credential or signature
 *   - words of 20 or more letters and digits, with both, such as API keys, tokens and hashes */
void scrub_text(struct buf *out, const char *text, size_t n, const char *const *values);
