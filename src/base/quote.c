/* quote.c - see quote.h. */
#include "base/quote.h"

void quote_json(struct buf *out, const char *text, size_t n)
{
	static const char letters[] = "btn?fr"; /* 8 to 13; 11 has none */

	buf_putc(out, '"');
	for (size_t i = 0, plain; i < n; i++) {
		unsigned char c;

		for (plain = i; plain < n && (unsigned char)text[plain] >= 0x20 &&
				text[plain] != '"' && text[plain] != '\\';
		     plain++)
			;
		buf_add(out, text + i, plain - i);
		i = plain;
		if (i == n)
			break;
		c = (unsigned char)text[i];
		if (c == '"' || c == '\\')
			buf_add(out, (const char[]){ '\\', (char)c }, 2);
		else if (c >= 8 && c <= 13 && c != 11)
			buf_add(out, (const char[]){ '\\', letters[c - 8] }, 2);
		else
			buf_printf(out, "\\u%04x", c);
	}
	buf_putc(out, '"');
}
