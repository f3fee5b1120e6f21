/* buf.c - see buf.h. */
#include "base/buf.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Doubling makes n appends cost O(n); the floor spares short lines their first three moves. */
static size_t next_room(size_t have, size_t need)
{
	size_t room = have < 64 ? 64 : have;

	while (room < need)
		room = room > SIZE_MAX / 2 ? need : room * 2;
	return room;
}

char *buf_space(struct buf *b, size_t n)
{
	if (n >= SIZE_MAX - b->len)
		abort();
	if (b->len + n + 1 > b->room) {
		size_t room = next_room(b->room, b->len + n + 1);
		char *p = realloc(b->p, room);

		if (!p)
			abort();
		b->p = p;
		b->room = room;
		b->p[b->len] = 0;
	}
	return b->p + b->len;
}

void buf_grew(struct buf *b, size_t n)
{
	if (!n)
		return; /* p may be NULL then */
	assert(n < b->room - b->len);
	b->len += n;
	b->p[b->len] = 0;
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
	if (!n)
		return; /* memcpy() from NULL is undefined even for nothing */
	memcpy(buf_space(b, n), bytes, n);
	buf_grew(b, n);
}

void buf_puts(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_putc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	size_t room = b->room - b->len;
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(room ? b->p + b->len : NULL, room, fmt, again);
	va_end(again);
	assert(n >= 0); /* fails only for an invalid format, which would be a bug */
	if ((size_t)n >= room)
		vsnprintf(buf_space(b, (size_t)n), (size_t)n + 1, fmt, ap);
	buf_grew(b, (size_t)n);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(b, fmt, ap);
	va_end(ap);
}

char *buf_text(const char *fmt, ...)
{
	struct buf b = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	return buf_steal(&b);
}

void buf_cut(struct buf *b, size_t len)
{
	if (len >= b->len)
		return;
	b->len = len;
	b->p[len] = 0;
}

const char *buf_str(const struct buf *b)
{
	return b->p ? b->p : "";
}

char *buf_steal(struct buf *b)
{
	char *taken;

	buf_space(b, 0); /* an empty one has no memory yet, but its text is "", not NULL */
	taken = b->p;
	*b = (struct buf){ 0 };
	return taken;
}

void buf_fini(struct buf *b)
{
	free(b->p);
	*b = (struct buf){ 0 };
}
