/* head_tail.c - see head_tail.h. */
#include "base/head_tail.h"
#include "base/utf8.h"
#include <string.h>

void head_tail_add(struct head_tail *c, const char *bytes, size_t n)
{
	size_t half = c->half, room = half - c->head.len, first = n < room ? n : room;

	c->total += n;
	buf_add(&c->head, bytes, first);
	bytes += first;
	n -= first;
	if (n > half) { /* earlier bytes cannot be part of the end */
		bytes += n - half;
		n = half;
	}
	buf_add(&c->tail, bytes, n);
	if (c->tail.len > 4 * half) { /* compacted from time to time, not each time */
		size_t over = c->tail.len - half;

		memmove(c->tail.p, c->tail.p + over, half);
		buf_cut(&c->tail, half);
	}
}

static size_t head_tail_from(const struct head_tail *c)
{
	size_t half = c->half, from = c->tail.len > half ? c->tail.len - half : 0;

	return head_tail_lost(c) ? utf8_begin(c->tail.p, c->tail.len, from) : from;
}

uint64_t head_tail_lost(const struct head_tail *c)
{
	size_t half = c->half;
	uint64_t kept = c->head.len + (c->tail.len < half ? c->tail.len : half);

	return c->total - kept;
}

void head_tail_text(const struct head_tail *c, const char *gap, struct buf *out)
{
	uint64_t lost = head_tail_lost(c);
	size_t from = head_tail_from(c), head = c->head.len;
	int bad;

	if (lost && head) {
		size_t whole = utf8_complete(c->head.p, head, &bad);

		if (head - whole < 4 && !bad)
			head = whole;
	}
	utf8_scrub(out, buf_str(&c->head), head);
	if (lost)
		buf_printf(out, "\n[... %s ...]\n", gap);
	utf8_scrub(out, buf_str(&c->tail) + from, c->tail.len - from);
}

void head_tail_fini(struct head_tail *c)
{
	buf_fini(&c->head);
	buf_fini(&c->tail);
	c->total = 0;
}
