/* truncate.c - see truncate.h. */
#include "tools/truncate.h"
#include "base/utf8.h"
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
	if (c->tail.len > 4 * half) { /* compacted from time to time, not each time */
		size_t over = c->tail.len - half;

		memmove(c->tail.p, c->tail.p + over, half);
		buf_cut(&c->tail, half);
	}
}

static size_t tail_from(const struct truncated *c)
{
	size_t half = half_of(c), from = c->tail.len > half ? c->tail.len - half : 0;

	return truncate_lost(c) ? utf8_begin(c->tail.p, c->tail.len, from) : from;
}

uint64_t truncate_lost(const struct truncated *c)
{
	size_t half = half_of(c);
	uint64_t kept = c->head.len + (c->tail.len < half ? c->tail.len : half);

	return c->total - kept;
}

void truncate_text(const struct truncated *c, const char *how, struct buf *out)
{
	uint64_t lost = truncate_lost(c);
	size_t from = tail_from(c), head = c->head.len;
	int bad;

	if (lost && head) {
		size_t whole = utf8_complete(c->head.p, head, &bad);

		if (head - whole < 4 && !bad)
			head = whole;
	}
	utf8_scrub(out, buf_str(&c->head), head);
	if (lost)
		buf_printf(out, "\n[... %llu bytes left out%s%s ...]\n", (unsigned long long)lost,
			   how ? "; " : "", how ? how : "");
	utf8_scrub(out, buf_str(&c->tail) + from, c->tail.len - from);
}

void truncate_fini(struct truncated *c)
{
	buf_fini(&c->head);
	buf_fini(&c->tail);
	c->total = 0;
}
