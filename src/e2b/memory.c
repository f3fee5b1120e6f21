/* memory.c - what the door remembers of a box, and secrets compared. */
#include "base/own.h"
#include "e2b/e2b.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

int e2b_same(const char *a, const char *b)
{
	size_t n = strlen(a);

	return n > 0 && n == strlen(b) && CRYPTO_memcmp(a, b, n) == 0;
}

static void text_of(const json_t *o, const char *name, char *out, size_t size)
{
	const char *text = json_string_value(json_object_get(o, name));

	snprintf(out, size, "%s", text ? text : "");
}

void e2b_box_read(const struct berth *b, struct e2b_box *out)
{
	json_t *doc = b->row.door ? json_loads(b->row.door, 0, NULL) : NULL;
	const json_t *o = json_object_get(doc, "e2b");

	*out = (struct e2b_box){ .ours = json_is_object(o) };
	text_of(o, "token", out->token, sizeof(out->token));
	text_of(o, "traffic", out->traffic, sizeof(out->traffic));
	text_of(o, "template", out->template, sizeof(out->template));
	out->auto_pause = json_is_true(json_object_get(o, "auto_pause"));
	out->pause_memory = !json_is_false(json_object_get(o, "pause_memory"));
	out->auto_resume = json_is_true(json_object_get(o, "auto_resume"));
	json_decref(doc);
}

char *e2b_box_text(const struct e2b_box *x)
{
	json_t *doc = json_pack("{s:{s:s, s:s, s:s, s:b, s:b, s:b}}", "e2b", "token", x->token,
				"traffic", x->traffic, "template", x->template, "auto_pause",
				x->auto_pause, "pause_memory", x->pause_memory, "auto_resume",
				x->auto_resume);
	char *text = json_dumps(doc, JSON_COMPACT);

	json_decref(doc);
	if (!text)
		abort();
	return text;
}
