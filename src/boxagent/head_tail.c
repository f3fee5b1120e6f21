/* head_tail.c - see head_tail.h. */
#include "boxagent/head_tail.h"
#include "base/utf8.h"

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

/* How many bytes are left when half a character at the end is not counted. */
static size_t head_tail_whole(const char *bytes, size_t n)
{
	size_t last = n;

	while (last && n - last < 3 && utf8_continues(bytes[last - 1]))
		last--;
	if (!last || (bytes[last - 1] & 0xc0) != 0xc0)
		return n;
	return utf8_length(bytes + last - 1, n - last + 1) ? n : last - 1;
}

void head_tail_text(const struct head_tail *c, struct buf *out)
{
	uint64_t lost = head_tail_lost(c);
	size_t from = c->tail.len - tail_len(c);

	if (lost)
		from = utf8_begin(c->tail.p, c->tail.len, from);
	utf8_scrub(out, buf_str(&c->head),
		   lost ? head_tail_whole(c->head.p, c->head.len) : c->head.len);
	if (lost)
		buf_printf(out, "\n[... %llu of %llu bytes left out ...]\n",
			   (unsigned long long)lost, (unsigned long long)c->total);
	utf8_scrub(out, buf_str(&c->tail) + from, c->tail.len - from);
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
