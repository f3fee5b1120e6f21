/* imports.c - see imports.h. */
#include "debug/imports.h"
#include "base/edit_distance.h"
#include "base/cleanup.h"
#include "lang/popular_packages.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILES = 16 };

static struct toml docs[MOST_FILES];
static unsigned ndocs;

const struct toml_node *import_table(const struct lang *l)
{
	for (const struct image *i = import_images + ndocs; i->text; i++) {
		if (ndocs == MOST_FILES)
			abort();
		image_read(i, &docs[ndocs++]);
	}
	for (unsigned i = 0; l && i < ndocs; i++)
		if (image_has(toml_get(docs[i].root, "languages"), l->name))
			return docs[i].root;
	return NULL;
}

/* ---- names ---- */

/* Where names have parts, from the most to the fewest: "google.cloud.storage", "google.cloud",
 * ... */
static int imports_shorten(char *name, const char *separator)
{
	char *last = NULL;

	for (char *at = name; *separator && (at = strstr(at, separator)); at += strlen(separator))
		last = at;
	if (!last || last == name)
		return 0;
	*last = 0;
	return 1;
}

static const char *pair_of(const struct lang *l, const char *name)
{
	for (const struct lang_pair *p = l->packages.names; p && p->key; p++)
		if (!strcmp(p->key, name))
			return p->value;
	return "";
}

static int is_common(enum package_manager m, const char *name)
{
	for (const char *const *c = common_names[m]; c && *c; c++)
		if (!strcmp(*c, name))
			return 1;
	return 0;
}

static int is_known(const struct toml_node *t, enum package_manager m, const char *name)
{
	return image_has(toml_get(t, "known"), name) || is_common(m, name);
}

/* Every name of two letters is one letter away from many others. */
static const char *imports_mistyped(const struct toml_node *t, const char *name)
{
	const struct toml_node *builtin = toml_get(t, "builtin");
	size_t n = strlen(name);

	for (const struct toml_node *b = builtin ? builtin->in.first : NULL; b; b = b->next)
		if (b->len > 3 && n >= 3 && edit_distance(name, b->text) == 1)
			return b->text;
	for (const struct toml_node *b = builtin ? builtin->in.first : NULL; b; b = b->next)
		if (b->len > 6 && edit_distance(name, b->text) == 2)
			return b->text;
	/* import Math, import JSON */
	for (const struct toml_node *b = builtin ? builtin->in.first : NULL; b; b = b->next)
		if (!strcasecmp(b->text, name))
			return b->text;
	return NULL;
}

static const char *near_known(const struct toml_node *t, enum package_manager m, const char *name)
{
	const struct toml_node *known = toml_get(t, "known");
	const char *meant = package_mistaken(m, name);

	for (const struct toml_node *k = known ? known->in.first : NULL; k && !meant; k = k->next)
		if (k->len > 3 && edit_distance(name, k->text) == 1)
			meant = k->text;
	return meant;
}

/* ---- one name ---- */

static void imports_answer(struct import *out, enum import_kind kind, const char *package,
			   const char *meant)
{
	out->kind = kind;
	snprintf(out->package, sizeof(out->package), "%s", package);
	snprintf(out->meant, sizeof(out->meant), "%s", meant);
}

/* Exactly this name, or nothing. */
static int look_up(const struct lang *l, const struct toml_node *t, const char *name,
		   struct import *out)
{
	const char *row = pair_of(l, name), *mine = image_text(toml_get(t, "names"), name);
	const char *today = image_text(toml_get(t, "replaced"), name);

	if (image_has(toml_get(t, "builtin"), name))
		imports_answer(out, IMPORT_BUILTIN, "", "");
	else if (*row || *mine)
		imports_answer(out, IMPORT_KNOWN, *mine ? mine : row, "");
	else if (*today)
		imports_answer(out, IMPORT_REPLACED, "", today);
	else if (is_known(t, out->manager, name))
		imports_answer(out, IMPORT_KNOWN, name, "");
	else
		return 0;
	snprintf(out->top, sizeof(out->top), "%s", name);
	return 1;
}

static void by_pattern(const char *pattern, const char *name, char out[PACKAGE_TEXT + 1])
{
	const char *hole = strstr(pattern, "{}");
	size_t n = 0;

	if (!hole) {
		snprintf(out, PACKAGE_TEXT + 1, "%s", name);
		return;
	}
	n = (size_t)snprintf(out, PACKAGE_TEXT + 1, "%.*s", (int)(hole - pattern), pattern);
	for (; *name && n < PACKAGE_TEXT; name++) {
		if (name[0] == ':' && name[1] == ':') {
			out[n++] = '-';
			name++;
		} else {
			out[n++] = (char)(*name == '_' ? '-' : tolower((unsigned char)*name));
		}
	}
	snprintf(out + n, PACKAGE_TEXT + 1 - n, "%s", hole + 2);
}

static int is_package(enum package_manager m, const char *name)
{
	struct packages p = { .manager = m };
	struct err e;
	int ok = packages_add(&p, name, &e) == 0;

	packages_fini(&p);
	return ok;
}

static void imports_guess(const struct toml_node *t, const char *top, struct import *out)
{
	const char *builtin = imports_mistyped(t, top), *common;

	by_pattern(image_text(t, "pattern"), top, out->package);
	common = near_known(t, out->manager, out->package);
	if (builtin)
		imports_answer(out, IMPORT_MISTYPED, "", builtin);
	else if (common)
		imports_answer(out, IMPORT_SUSPECT, "", common);
	else if (!strcmp(image_text(t, "guess"), "never") ||
		 !is_package(out->manager, out->package))
		imports_answer(out, IMPORT_NONE, "", "");
	else
		out->kind = IMPORT_GUESSED;
}

/* The part of a name that is a package: "a" of "a/b", "@a/b" of "@a/b/c", three of a host's
 * path. */
static void top_of(const struct toml_node *t, const char *name, char out[PACKAGE_TEXT + 1])
{
	const char *separator = image_text(t, "separator");
	const char *end = *separator ? strstr(name, separator) : NULL;
	unsigned parts = name[0] == '@' ? 2 : 1;

	if (image_number(t, "parts"))
		parts = image_number(t, "parts");
	while (end && --parts)
		end = strstr(end + 1, separator);
	snprintf(out, PACKAGE_TEXT + 1, "%.*s", (int)(end ? (size_t)(end - name) : strlen(name)),
		 name);
}

void import_find(const struct lang *l, const char *name, struct import *out)
{
	const struct toml_node *t = import_table(l);
	char part[PACKAGE_TEXT + 1];
	int m = t ? package_manager_named(image_text(t, "manager")) : -1;

	*out = (struct import){ 0 };
	if (m < 0 || strlen(name) > PACKAGE_TEXT || !*name)
		return;
	out->manager = (enum package_manager)m;
	if (m == PM_NPM && !strncmp(name, "node:", 5)) {
		imports_answer(out, IMPORT_BUILTIN, "", "");
		snprintf(out->top, sizeof(out->top), "%s", name);
		return;
	}
	snprintf(part, sizeof(part), "%s", name);
	do {
		if (look_up(l, t, part, out))
			return;
	} while (imports_shorten(part, image_text(t, "separator")));
	top_of(t, name, out->top);
	/* The standard library has no host in front. */
	if (m == PM_GO && !memchr(name, '.', strcspn(name, "/"))) {
		const char *meant = imports_mistyped(t, name);

		imports_answer(out, meant ? IMPORT_MISTYPED : IMPORT_NONE, "", meant ? meant : "");
		snprintf(out->top, sizeof(out->top), "%s", name);
		return;
	}
	imports_guess(t, out->top, out);
}

const char *import_link(const struct lang *l, const char *name)
{
	const struct toml_node *t = import_table(l), *links = t ? toml_get(t, "links") : NULL;
	const struct toml_node *best = NULL;

	for (const struct toml_node *k = links ? links->in.first : NULL; k; k = k->next)
		if (!strncmp(name, k->key, k->key_len) && (!best || k->key_len > best->key_len))
			best = k;
	return best && best->type == TOML_STRING ? best->text : "";
}
