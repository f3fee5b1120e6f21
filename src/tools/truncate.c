/* truncate.c - see truncate.h. */
#include "tools/truncate.h"
#include "api/event_stream.h"
#include <string.h>

static size_t half_of(const struct truncated *c)
{
	return c->half ? c->half : TRUNCATE_HALF;
}

void truncate_add(struct truncated *c, const char *bytes, size_t n)
{
	size_t half = half_of(c), room = half - c->head.len, first = n < room ? n : room;

	c->total += n;
	buf_add(&c->head, bytes, first);
	bytes += first;
	n -= first;
	if (n > half) { /* only the last of it can matter */
		bytes += n - half;
		n = half;
	}
	buf_add(&c->tail, bytes, n);
	if (c->tail.len > 4 * half) { /* moved together now and then, not each time */
		size_t over = c->tail.len - half;

		memmove(c->tail.p, c->tail.p + over, half);
		buf_cut(&c->tail, half);
	}
}

static size_t tail_from(const struct truncated *c)
{
	size_t half = half_of(c), from = c->tail.len > half ? c->tail.len - half : 0;

	/* Not in the middle of a character. */
	while (truncate_lost(c) && from < c->tail.len && (c->tail.p[from] & 0xc0) == 0x80)
		from++;
	return from;
}

uint64_t truncate_lost(const struct truncated *c)
{
	size_t half = half_of(c);
	uint64_t kept = c->head.len + (c->tail.len < half ? c->tail.len : half);

	return c->total - kept;
}

void truncate_clean(const char *bytes, size_t n, struct buf *out)
{
	while (n) { /* four bytes at a time: a character is never longer */
		size_t some = n < 4 ? n : 4, good;
		int bad;

		good = *bytes ? event_stream_utf8(bytes, some, &bad) : 0;
		if (good && memchr(bytes, 0, good))
			good = (size_t)((const char *)memchr(bytes, 0, good) - bytes);
		if (good)
			buf_add(out, bytes, good);
		else /* a NUL, a byte that never can be, or a character without its end */
			buf_puts(out, "\xef\xbf\xbd");
		bytes += good ? good : 1;
		n -= good ? good : 1;
	}
}

void truncate_text(const struct truncated *c, const char *how, struct buf *out)
{
	uint64_t lost = truncate_lost(c);
	size_t from = tail_from(c), head = c->head.len;
	int bad;

	if (lost && head) {
		size_t whole = event_stream_utf8(c->head.p, head, &bad);

		if (head - whole < 4 && !bad)
			head = whole;
	}
	truncate_clean(buf_str(&c->head), head, out);
	if (lost)
		buf_printf(out, "\n[... %llu bytes left out%s%s ...]\n", (unsigned long long)lost,
			   how ? "; " : "", how ? how : "");
	truncate_clean(buf_str(&c->tail) + from, c->tail.len - from, out);
}

void truncate_fini(struct truncated *c)
{
	buf_fini(&c->head);
	buf_fini(&c->tail);
	c->total = 0;
}
