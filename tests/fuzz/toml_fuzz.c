/* toml_fuzz.c - any bytes: the result is a tree within the limits, or an error with a line. */
#include "base/toml.h"
#include "fuzz.h"

#include <assert.h>
#include <string.h>

static unsigned walk(const struct toml_node *n, unsigned depth)
{
	unsigned nodes = 1, children = 0;

	/* An array of tables has two levels in the tree and one in the text. */
	assert(depth <= 2 * TOML_MAX_DEPTH && n->line >= 1);
	if (n->type == TOML_STRING || n->type >= TOML_DATETIME)
		assert(n->text[n->len] == 0);
	if (n->type != TOML_TABLE && n->type != TOML_ARRAY)
		return nodes;
	for (const struct toml_node *c = n->in.first; c; c = c->next, children++) {
		assert(!c->key == (n->type == TOML_ARRAY));
		if (c->key && strlen(c->key) == c->key_len)
			assert(toml_get(n, c->key) ==
			       c); /* a key occurs once, so the first is the only one */
		nodes += walk(c, depth + 1);
	}
	assert(children == n->in.count);
	return nodes;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct err e = { 0 };
	struct toml doc;

	if (toml_parse(&doc, "f", (const char *)bytes, len, &e) < 0) {
		assert(!strncmp(e.msg, "f:", 2) && (e.kind == ERR_INVALID || e.kind == ERR_LIMIT));
		return 0;
	}
	assert(walk(doc.root, 0) <= TOML_MAX_VALUES + 1);
	toml_fini(&doc);
	return 0;
}
