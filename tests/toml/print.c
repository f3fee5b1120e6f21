/* print.c - reads TOML from stdin, prints its tree as JSON; or the error, and exits 1.
 * Every value is {"type": ..., "value": text}, so that no number loses anything on the way. */
#include "base/buf.h"
#include "base/toml.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

static json_t *tagged(const char *type, json_t *value)
{
	return json_pack("{s:s, s:o}", "type", type, "value", value);
}

static json_t *scalar(const struct toml_node *n)
{
	char text[64];

	switch (n->type) {
	case TOML_STRING:
		return tagged("string", json_stringn(n->text, n->len));
	case TOML_INTEGER:
		snprintf(text, sizeof(text), "%" PRId64, n->integer);
		return tagged("integer", json_string(text));
	case TOML_FLOAT:
		snprintf(text, sizeof(text), "%.17g", n->real);
		return tagged("float", json_string(text));
	case TOML_BOOLEAN:
		return tagged("bool", json_string(n->truth ? "true" : "false"));
	case TOML_DATETIME:
		return tagged("datetime", json_stringn(n->text, n->len));
	case TOML_LOCAL_DATETIME:
		return tagged("datetime-local", json_stringn(n->text, n->len));
	case TOML_DATE:
		return tagged("date-local", json_stringn(n->text, n->len));
	default:
		return tagged("time-local", json_stringn(n->text, n->len));
	}
}

/* A list of pairs and not an object: a key may hold a NUL. */
static json_t *tree(const struct toml_node *n)
{
	json_t *list = n->type == TOML_TABLE || n->type == TOML_ARRAY ? json_array() : NULL;

	if (!list)
		return scalar(n);
	for (const struct toml_node *c = n->in.first; c; c = c->next)
		json_array_append_new(list, n->type == TOML_ARRAY
						    ? tree(c)
						    : json_pack("[o, o]",
								json_stringn(c->key, c->key_len),
								tree(c)));
	return tagged(n->type == TOML_TABLE ? "table" : "array", list);
}

int main(void)
{
	auto_buf struct buf in = { 0 };
	struct toml doc;
	json_t *json;
	struct err e;
	size_t n;

	while ((n = fread(buf_space(&in, 65536), 1, 65536, stdin)) > 0 &&
	       in.len < 4 * TOML_MAX_BYTES)
		buf_grew(&in, n);
	if (toml_parse(&doc, "stdin", buf_str(&in), in.len, &e) < 0) {
		puts(e.msg);
		return 1;
	}
	json = tree(doc.root);
	json_dumpf(json, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(json);
	toml_fini(&doc);
	return 0;
}
