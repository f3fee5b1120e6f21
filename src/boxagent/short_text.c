/* short_text.c - see short_text.h. */
#include "boxagent/short_text.h"

#include <stdio.h>

void short_text_put(const struct head_tail *c, struct buf *out)
{
	char gap[80];

	snprintf(gap, sizeof(gap), "%llu of %llu bytes left out",
		 (unsigned long long)head_tail_lost(c), (unsigned long long)c->total);
	head_tail_text(c, gap, out);
}

json_t *short_text_string(const char *bytes, size_t n, size_t most)
{
	struct head_tail c = { .half = most / 2 };
	auto_buf struct buf text = { 0 };

	head_tail_add(&c, bytes, n);
	short_text_put(&c, &text);
	head_tail_fini(&c);
	return json_stringn(buf_str(&text), text.len);
}

json_t *short_text_action(const json_t *action, size_t most)
{
	json_t *copy = json_deep_copy(action), *args = json_object_get(copy, "args"), *v;
	const char *name;
	void *tmp;

	json_object_foreach_safe(args, tmp, name,
				 v) if (json_is_string(v) && json_string_length(v) > most)
		json_object_set_new(args, name,
				    short_text_string(json_string_value(v), json_string_length(v),
						      most));
	return copy;
}
