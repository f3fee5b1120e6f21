/* base64.c - see base64.h. */
#include "base/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct buf *out, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	char *to = buf_space(out, (n + 2) / 3 * 4), *at = to;

	for (; n >= 3; n -= 3, p += 3, at += 4) {
		unsigned v = (unsigned)p[0] << 16 | (unsigned)p[1] << 8 | p[2];

		at[0] = digits[v >> 18];
		at[1] = digits[v >> 12 & 63];
		at[2] = digits[v >> 6 & 63];
		at[3] = digits[v & 63];
	}
	if (n) {
		unsigned v = (unsigned)p[0] << 16 | (n > 1 ? (unsigned)p[1] << 8 : 0);

		*at++ = digits[v >> 18];
		*at++ = digits[v >> 12 & 63];
		*at++ = n > 1 ? digits[v >> 6 & 63] : '=';
		*at++ = '=';
	}
	buf_grew(out, (size_t)(at - to));
}

static int value_of(char c)
{
	const char *at = c ? memchr(digits, c, sizeof(digits) - 1) : NULL;

	return at ? (int)(at - digits) : -1;
}

int base64_decode(struct buf *out, const char *text, size_t n)
{
	size_t padding = n && text[n - 1] == '=' ? 1 + (n > 1 && text[n - 2] == '=') : 0;

	if (n % 4)
		return -1;
	for (size_t i = 0; i < n; i += 4) {
		size_t real = i + 4 == n ? 4 - padding : 4;
		unsigned v = 0;

		for (size_t k = 0; k < 4; k++) {
			int d = k < real ? value_of(text[i + k]) : 0;

			if (d < 0)
				return -1;
			v = v << 6 | (unsigned)d;
		}
		for (size_t k = 0; k + 1 < real; k++)
			buf_putc(out, (char)(v >> (16 - 8 * k) & 255));
	}
	return 0;
}
