/* tokens.c - the data that the surface stores with a box, and the comparison of secrets. */
#include "base/cleanup.h"
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

void e2b_box_read(const struct box *b, struct e2b_box *out)
{
	json_t *doc = b->row.surface ? json_loads(b->row.surface, 0, NULL) : NULL;
	const json_t *o = json_object_get(doc, "e2b");

	*out = (struct e2b_box){ .ours = json_is_object(o) };
	text_of(o, "token", out->token, sizeof(out->token));
	text_of(o, "traffic", out->traffic, sizeof(out->traffic));
	text_of(o, "template", out->template, sizeof(out->template));
	text_of(o, "mask", out->mask, sizeof(out->mask));
	out->public_ports = json_is_true(json_object_get(o, "public_ports"));
	out->auto_pause = json_is_true(json_object_get(o, "auto_pause"));
	out->pause_memory = !json_is_false(json_object_get(o, "pause_memory"));
	out->auto_resume = json_is_true(json_object_get(o, "auto_resume"));
	json_decref(doc);
}

/* The row is compact JSON written by the server, and a quote within a text is escaped: the first
 * such member is the token. A member that a client put after it can open no other box than the
 * client's own. */
int e2b_box_token(const struct box *b, char out[E2B_TOKEN + 1])
{
	static const char member[] = "\"token\":\"";
	const char *at = b->row.surface ? strstr(b->row.surface, member) : NULL;

	if (!at)
		return 0;
	at += strlen(member);
	if (strspn(at, "0123456789abcdef") != E2B_TOKEN || at[E2B_TOKEN] != '"')
		return 0;
	memcpy(out, at, E2B_TOKEN);
	out[E2B_TOKEN] = 0;
	return 1;
}

static json_t *tokens_known(const struct e2b_box *x)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:b, s:b}", "token", x->token, "traffic",
			 x->traffic, "template", x->template, "mask", x->mask, "public_ports",
			 x->public_ports, "auto_pause", x->auto_pause, "pause_memory",
			 x->pause_memory, "auto_resume", x->auto_resume);
}

static char *tokens_merged(const char *surface, json_t *take_more)
{
	json_t *doc = surface ? json_loads(surface, 0, NULL) : NULL, *o;
	char *text;

	if (!json_is_object(doc)) {
		json_decref(doc);
		doc = json_object();
	}
	o = json_object_get(doc, "e2b");
	if (!json_is_object(o)) {
		json_object_set_new(doc, "e2b", json_object());
		o = json_object_get(doc, "e2b");
	}
	json_object_update(o, take_more);
	json_decref(take_more);
	text = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	if (!text)
		abort();
	return text;
}

char *e2b_box_text(const struct e2b_box *x)
{
	return tokens_merged(NULL, tokens_known(x));
}

char *e2b_box_text_on(const char *surface, const struct e2b_box *x)
{
	return tokens_merged(surface, tokens_known(x));
}

char *e2b_box_text_with(const char *surface, const char *name, json_t *take_value)
{
	return tokens_merged(surface, json_pack("{s:o}", name, take_value));
}

json_t *e2b_box_more(const struct box *b, const char *name)
{
	json_t *doc = b->row.surface ? json_loads(b->row.surface, 0, NULL) : NULL;
	json_t *v = json_incref(json_object_get(json_object_get(doc, "e2b"), name));

	json_decref(doc);
	return v;
}
