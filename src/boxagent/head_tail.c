/* head_tail.c - see head_tail.h. */
#include "boxagent/head_tail.h"

#include <string.h>

void head_tail_add(struct head_tail *c, const char *bytes, size_t n)
{
	size_t half = c->most / 2, room = half - c->head.len, first = n < room ? n : room;

	c->total += n;
	buf_add(&c->head, bytes, first);
	bytes += first;
	n -= first;
	if (n > half) { /* only the last of it can matter */
		bytes += n - half;
		n = half;
	}
	buf_add(&c->tail, bytes, n);
	if (c->tail.len > 3 * half) { /* moved together now and then, not each time */
		memmove(c->tail.p, c->tail.p + (c->tail.len - half), half);
		buf_cut(&c->tail, half);
	}
}

static size_t tail_len(const struct head_tail *c)
{
	return c->tail.len < c->most / 2 ? c->tail.len : c->most / 2;
}

uint64_t head_tail_lost(const struct head_tail *c)
{
	return c->total - c->head.len - tail_len(c);
}

/* Bytes of the character that begins here; 0: none does. */
static size_t head_tail_character(const unsigned char *p, size_t n)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} rows[] = { { 0x80, 0x00, 1 },
		     { 0xe0, 0xc0, 0x80 },
		     { 0xf0, 0xe0, 0x800 },
		     { 0xf8, 0xf0, 0x10000 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint32_t c = p[0] & (unsigned char)~rows[i].mask;

		if ((p[0] & rows[i].mask) != rows[i].lead)
			continue;
		if (n <= i)
			return 0;
		for (size_t k = 1; k <= i; k++) {
			if ((p[k] & 0xc0) != 0x80)
				return 0;
			c = c << 6 | (p[k] & 0x3f);
		}
		return c < rows[i].least || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? 0
											 : i + 1;
	}
	return 0;
}

void head_tail_clean(const char *bytes, size_t n, struct buf *out)
{
	while (n) {
		size_t good = head_tail_character((const unsigned char *)bytes, n);

		if (good)
			buf_add(out, bytes, good);
		else
			buf_puts(out, "\xef\xbf\xbd");
		bytes += good ? good : 1;
		n -= good ? good : 1;
	}
}

/* How many bytes are left when half a character at the end is not counted. */
static size_t head_tail_whole(const char *bytes, size_t n)
{
	size_t last = n;

	while (last && n - last < 3 && (bytes[last - 1] & 0xc0) == 0x80)
		last--;
	if (!last || (bytes[last - 1] & 0xc0) != 0xc0)
		return n;
	return head_tail_character((const unsigned char *)bytes + last - 1, n - last + 1)
		       ? n
		       : last - 1;
}

void head_tail_text(const struct head_tail *c, struct buf *out)
{
	uint64_t lost = head_tail_lost(c);
	size_t from = c->tail.len - tail_len(c);

	while (lost && from < c->tail.len && (c->tail.p[from] & 0xc0) == 0x80)
		from++;
	head_tail_clean(buf_str(&c->head),
			lost ? head_tail_whole(c->head.p, c->head.len) : c->head.len, out);
	if (lost)
		buf_printf(out, "\n[... %llu of %llu bytes left out ...]\n",
			   (unsigned long long)lost, (unsigned long long)c->total);
	head_tail_clean(buf_str(&c->tail) + from, c->tail.len - from, out);
}

void head_tail_fini(struct head_tail *c)
{
	buf_fini(&c->head);
	buf_fini(&c->tail);
}

json_t *head_tail_string(const char *bytes, size_t n, size_t most)
{
	struct head_tail c = { .most = most };
	auto_buf struct buf text = { 0 };

	head_tail_add(&c, bytes, n);
	head_tail_text(&c, &text);
	head_tail_fini(&c);
	return json_stringn(buf_str(&text), text.len);
}

json_t *head_tail_action(const json_t *action, size_t most)
{
	json_t *copy = json_deep_copy(action), *args = json_object_get(copy, "args"), *v;
	const char *name;
	void *tmp;

	json_object_foreach_safe(args, tmp, name,
				 v) if (json_is_string(v) && json_string_length(v) > most)
		json_object_set_new(args, name,
				    head_tail_string(json_string_value(v), json_string_length(v),
						     most));
	return copy;
}
