/* rules.c - see rules.h. */
#include "debug/rules.h"
#include "debug/debug.h"
#include "debug/fix.h"
#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_FILES = 32 };

static struct rules sets[MOST_FILES];
static unsigned nsets;
static const char *without;

static const char *const places[ON_COUNT] = {
	/* clang-format off */
	[ON_EXIT] = "exit", [ON_FAULT] = "fault", [ON_ERRORS] = "errors", [ON_TEXT] = "text",
	/* clang-format on */
};

static enum rule_on place_of(const char *file, const struct toml_node *n)
{
	for (unsigned i = 0; i < ON_COUNT; i++)
		if (!strcmp(image_text(n, "on"), places[i]))
			return (enum rule_on)i;
	image_bad(file, n, "on: exit, fault, errors or text");
}

static void read_fixes(const char *file, const struct toml_node *n, struct rule *out)
{
	const struct toml_node *fixes = toml_get(n, "fix");
	unsigned count = 0;

	for (const struct toml_node *f = fixes ? fixes->in.first : NULL; f; f = f->next) {
		if (count == RULE_FIXES || f->type != TOML_STRING || !fix_named(f->text))
			image_bad(file, f, "fix: there is no such fix");
		out->fixes[count++] = fix_named(f->text);
	}
}

static void read_rule(const char *file, const struct toml_node *n, struct rule *out)
{
	const struct toml_node *sure = toml_get(n, "confidence"), *weak = toml_get(n, "weak");

	*out = (struct rule){
		.name = image_text(n, "name"),
		.category = image_text(n, "category"),
		.match = image_text(n, "match"),
		.why = image_text(n, "why"),
		.on = place_of(file, n),
		.exit = (int)image_number(n, "exit"),
		.subject = image_number(n, "subject"),
		.meant = image_number(n, "meant"),
		.file = image_number(n, "file"),
		.line = image_number(n, "line"),
		.column = image_number(n, "column"),
		.confidence = sure && sure->type == TOML_FLOAT ? sure->real : 0.9,
		.weak = weak && weak->type == TOML_BOOLEAN && weak->truth,
		.source = n,
	};
	if (!*out->name || !*out->match || !*out->why || debug_category(out->category) < 0)
		image_bad(file, n, "a rule has a name, a category, a match and a why");
	if (regcomp(&out->re, out->match, REG_EXTENDED) != 0 || out->re.re_nsub >= RULE_GROUPS)
		image_bad(file, n, "match: not a regular expression, or too many groups");
	read_fixes(file, n, out);
}

static void read_set(const struct image *i, struct rules *out)
{
	const struct toml_node *list;

	out->file = i->name;
	image_read(i, &out->doc);
	list = toml_get(out->doc.root, "rules");
	if (!toml_get(out->doc.root, "languages"))
		image_bad(i->name, NULL, "languages: which?");
	out->v = calloc(list ? list->in.count : 1, sizeof(*out->v));
	if (!out->v)
		abort();
	for (const struct toml_node *n = list ? list->in.first : NULL; n; n = n->next)
		read_rule(i->name, n, &out->v[out->n++]);
}

unsigned rules_count(void)
{
	for (const struct image *i = rule_images + nsets; i->text; i++) {
		if (nsets == MOST_FILES)
			abort();
		read_set(i, &sets[nsets++]);
	}
	return nsets;
}

const struct rules *rules_at(unsigned i)
{
	return &sets[i];
}

int rules_speak_of(const struct rules *r, const struct lang *l)
{
	const struct toml_node *whose = toml_get(r->doc.root, "languages");

	return image_has(whose, "*") || (l && image_has(whose, l->name));
}

const struct toml_node *rules_table(const struct lang *l, const char *table)
{
	for (unsigned i = 0; i < rules_count(); i++) {
		const struct toml_node *t = toml_get(sets[i].doc.root, table);

		if (t && rules_speak_of(&sets[i], l))
			return t;
	}
	return NULL;
}

const char *rules_word(const struct lang *l, const char *table, const char *key)
{
	for (unsigned i = 0; i < rules_count(); i++) {
		const struct toml_node *t = toml_get(sets[i].doc.root, table);

		if (t && rules_speak_of(&sets[i], l) && *image_text(t, key))
			return image_text(t, key);
	}
	return "";
}

void rules_without(const char *name)
{
	without = name;
}

int rules_off(const struct rule *r)
{
	return without && !strcmp(r->name, without);
}
