/* embedded.c - see embedded.h. */
#include "document/embedded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void image_bad(const char *name, const struct toml_node *at, const char *what)
{
	fprintf(stderr, "atoll: %s:%u: %s\n", name, at ? at->line : 0, what);
	abort();
}

void image_read(const struct image *i, struct toml *out)
{
	struct err e;

	if (toml_parse(out, i->name, i->text, (size_t)(i->end - i->text), &e) < 0)
		image_bad(i->name, NULL, e.msg);
}

const char *image_text(const struct toml_node *table, const char *key)
{
	const struct toml_node *v = table ? toml_get(table, key) : NULL;

	return v && v->type == TOML_STRING ? v->text : "";
}

unsigned image_number(const struct toml_node *table, const char *key)
{
	const struct toml_node *v = table ? toml_get(table, key) : NULL;

	return v && v->type == TOML_INTEGER && v->integer > 0 ? (unsigned)v->integer : 0;
}

int image_has(const struct toml_node *array, const char *text)
{
	if (!array || array->type != TOML_ARRAY)
		return 0;
	for (const struct toml_node *v = array->in.first; v; v = v->next)
		if (v->type == TOML_STRING && !strcmp(v->text, text))
			return 1;
	return 0;
}
