/* utf8.h - UTF-8 as in RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. A NUL is a character. */
#pragma once
#include "base/buf.h"
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Bytes of the character at the beginning of n bytes; 0: there is none, or it is incomplete. */
unsigned utf8_length(const void *bytes, size_t n);
/* The same; *out_code is set to the code point, or to U+FFFD if the result is 0. */
unsigned utf8_decode(const void *bytes, size_t n, uint32_t *out_code);
int utf8_valid(const void *bytes, size_t n); /* complete characters only */
/* How many of n bytes are complete characters; *bad: the bytes contain an invalid sequence, at that place. */
size_t utf8_complete(const void *bytes, size_t n, int *bad);
/* Appends n bytes as text without NUL: U+FFFD replaces each NUL and each byte that is not part of a character. */
void utf8_scrub(struct buf *out, const char *bytes, size_t n);

/* A check of text that arrives in pieces; zeroed at the beginning. After the last piece, need is 0 if the last
 * character is complete. */
struct utf8_check {
	uint8_t need, low, high;
};
int utf8_check_add(struct utf8_check *u, const void *bytes, size_t n); /* 0: not UTF-8 */

/* The second and later bytes of a character. */
static inline int utf8_continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}
/* The largest length up to n that does not cut a character of text; text[n] must be readable. */
size_t utf8_cut(const char *text, size_t n);
/* The first place from `from` on at which a character can begin, or n. */
size_t utf8_begin(const char *text, size_t n, size_t from);
