/* utf8.c - see utf8.h. */
#include "base/utf8.h"

static unsigned utf8_lead_length(unsigned char c)
{
	return c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
}

/* After some first bytes the second byte has narrower bounds, which exclude surrogates, overlong forms
 * and code points above U+10FFFF. */
static void utf8_second_bounds(unsigned char lead, uint8_t *low, uint8_t *high)
{
	*low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
	*high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
}

/* Bytes of the character at p, although fewer may be there; 0: these bytes begin none. */
static unsigned utf8_expected(const unsigned char *p, size_t n)
{
	unsigned len = utf8_lead_length(*p);
	uint8_t low, high;

	if (len < 2 || n < 2)
		return len;
	utf8_second_bounds(*p, &low, &high);
	if (p[1] < low || p[1] > high)
		return 0;
	for (unsigned i = 2; i < len && i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

unsigned utf8_length(const void *bytes, size_t n)
{
	unsigned len = n ? utf8_expected(bytes, n) : 0;

	return len <= n ? len : 0;
}

unsigned utf8_decode(const void *bytes, size_t n, uint32_t *out_code)
{
	unsigned len = utf8_length(bytes, n);
	const unsigned char *p = bytes;

	if (len < 2) {
		*out_code = len ? *p : 0xfffd;
		return len;
	}
	*out_code = *p & (0x7fu >> len);
	for (unsigned i = 1; i < len; i++)
		*out_code = *out_code << 6 | (p[i] & 0x3f);
	return len;
}

size_t utf8_complete(const void *bytes, size_t n, int *bad)
{
	const unsigned char *p = bytes;
	size_t i = 0;

	*bad = 0;
	while (i < n) {
		unsigned len = utf8_expected(p + i, n - i);

		*bad = !len;
		if (!len || len > n - i)
			break;
		i += len;
	}
	return i;
}

int utf8_valid(const void *bytes, size_t n)
{
	int bad;

	return utf8_complete(bytes, n, &bad) == n;
}

void utf8_scrub(struct buf *out, const char *bytes, size_t n)
{
	while (n) {
		unsigned len = *bytes ? utf8_length(bytes, n) : 0;

		if (len)
			buf_add(out, bytes, len);
		else
			buf_puts(out, UTF8_REPLACEMENT);
		bytes += len ? len : 1;
		n -= len ? len : 1;
	}
}

int utf8_check_add(struct utf8_check *u, const void *bytes, size_t n)
{
	for (const uint8_t *p = bytes, *end = p + n; p < end; p++) {
		if (!u->need) {
			unsigned len = utf8_lead_length(*p);

			if (!len)
				return 0;
			utf8_second_bounds(*p, &u->low, &u->high);
			u->need = (uint8_t)(len - 1);
			continue;
		}
		if (*p < u->low || *p > u->high)
			return 0;
		u->low = 0x80;
		u->high = 0xbf;
		u->need--;
	}
	return 1;
}

size_t utf8_cut(const char *text, size_t n)
{
	while (n && utf8_continues(text[n]))
		n--;
	return n;
}

size_t utf8_begin(const char *text, size_t n, size_t from)
{
	while (from < n && utf8_continues(text[from]))
		from++;
	return from;
}
