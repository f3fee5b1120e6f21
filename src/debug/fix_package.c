/* fix_package.c - fixes for imports and packages. */
#include "debug/imports.h"
#include "debug/fix_steps.h"
#include "base/edit_distance.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- shared ---- */

const char *failure_path(const struct failure_case *s, size_t i)
{
	const char *path;
	const json_t *text;

	json_object_foreach((json_t *)json_object_get(s->artifact, "files"), path,
			    text) if (!i--) return path;
	return NULL;
}

unsigned text_rename(struct buf *out, const char *text, const char *word, const char *with)
{
	const char *at;
	unsigned n = 0;

	for (; (at = text_word(text, word)); n++) {
		buf_add(out, text, (size_t)(at - text));
		buf_puts(out, with);
		text = at + strlen(word);
	}
	buf_puts(out, text);
	return n;
}

void child_env(json_t *child, const char *name, const char *value)
{
	json_t *env = json_object_get(child, "env");

	if (!json_is_object(env)) {
		env = json_object();
		json_object_set_new(child, "env", env);
	}
	json_object_set_new(env, name, json_string(value));
}

/* ---- packages ---- */

static json_t *package_in(const json_t *artifact, const char *manager, const char *name)
{
	json_t *list = json_object_get(artifact, "packages"), *one;
	size_t i;

	json_array_foreach(list, i, one) if (!strcmp(doc_text(one, "name"), name) &&
					     !strcmp(doc_text(one, "manager"), manager)) return one;
	return NULL;
}

static void child_package(json_t *child, const char *manager, const char *name)
{
	json_t *list = json_object_get(child, "packages");

	if (!json_is_array(list)) {
		list = json_array();
		json_object_set_new(child, "packages", list);
	}
	json_array_append_new(list, json_pack("{s:s, s:s}", "manager", manager, "name", name));
}

static int may_guess(const struct failure_case *s)
{
	return !json_is_false(json_object_get(s->plan, "unknown_packages"));
}

static int add_package(struct failure_case *s, const struct import *i)
{
	const char *manager = package_manager_name(i->manager);
	json_t *child;

	if (package_in(s->artifact, manager, i->package))
		return failure_stop(s, "llm", "%s %s is installed and does not bring %s", manager,
				    i->package, s->subject);
	if (i->kind == IMPORT_GUESSED && !may_guess(s))
		return failure_ask(s, i->package,
				   "May %s %s be installed? It is in no list of known packages.",
				   manager, i->package);
	child = failure_child(s);
	child_package(child, manager, i->package);
	return failure_done(s, "install", child, "%s %s is installed for %s%s", manager, i->package,
			    s->subject,
			    i->kind == IMPORT_GUESSED ? "; no list of known packages has it" : "");
}

/* Replaces a word of the program, in the file of the failure, else in any file. */
static int rename_import(struct failure_case *s, const char *from, const char *to, const char *why)
{
	const char *path = failure_main(s);

	for (size_t i = 0; path; path = failure_path(s, i++)) {
		auto_buf struct buf text = { 0 };
		const char *was = failure_message(s, path);

		if (was && text_rename(&text, was, from, to))
			return failure_edit(s, path, &text, "%s is %s: %s", from, to, why);
	}
	return 0;
}

int fix_install(struct failure_case *s)
{
	struct import i;

	import_find(s->lang, s->subject, &i);
	switch (i.kind) {
	case IMPORT_KNOWN:
	case IMPORT_GUESSED:
		return add_package(s, &i);
	case IMPORT_MISTYPED:
		return rename_import(s, i.top, i.meant, "a name of the standard library, mistyped");
	case IMPORT_REPLACED:
		return rename_import(s, i.top, i.meant, "its name today");
	case IMPORT_SUSPECT:
		return rename_import(
			       s, i.top, i.meant,
			       "a very common package, one letter away; what is not it is not installed") ||
		       failure_stop(s, "human",
				    "%s is not installed: it is one letter away from %s", i.top,
				    i.meant);
	case IMPORT_BUILTIN:
		return failure_stop(
			s, "human",
			"%s comes with the language and is never installed; this runtime does not have it",
			i.top);
	case IMPORT_NONE:
		break;
	}
	return 0;
}

/* An undefined function may belong to an extension. */
int fix_extension(struct failure_case *s)
{
	struct import i;
	char prefix[FAILURE_TEXT];

	snprintf(prefix, sizeof(prefix), "%.*s", (int)strcspn(s->subject, "_"), s->subject);
	import_find(s->lang, prefix, &i);
	if (i.kind != IMPORT_KNOWN || !add_package(s, &i))
		return 0;
	s->category = "dependency_missing";
	return 1;
}

/* A mistyped shell command. */
int fix_near_command(struct failure_case *s)
{
	struct import i;

	import_find(s->lang, s->subject, &i);
	return i.kind != IMPORT_KNOWN && fix_near(s);
}

/* ---- C ---- */

static int add_link(struct failure_case *s, json_t *child, const char *library)
{
	const char *has = doc_text(json_object_get(s->artifact, "env"), "LDLIBS");
	char libs[FAILURE_TEXT];

	if (snprintf(libs, sizeof(libs), "%s%s-l%s", has, *has ? " " : "", library) >= FAILURE_TEXT)
		return 0;
	child_env(child, "LDLIBS", libs);
	return 1;
}

int fix_header(struct failure_case *s)
{
	struct import i;
	json_t *child;

	import_find(s->lang, s->subject, &i);
	if (i.kind == IMPORT_MISTYPED)
		return rename_import(s, i.top, i.meant,
				     "a header of the standard library, mistyped");
	if (i.kind != IMPORT_KNOWN || package_in(s->artifact, "apt", i.package))
		return 0;
	child = failure_child(s);
	child_package(child, "apt", i.package);
	if (*import_link(s->lang, s->subject))
		add_link(s, child, import_link(s->lang, s->subject));
	return failure_done(s, "install", child, "apt %s is installed for <%s>", i.package,
			    s->subject);
}

int fix_link(struct failure_case *s)
{
	const char *library = import_link(s->lang, s->subject);
	json_t *child = *library ? failure_child(s) : NULL;

	if (!child || !add_link(s, child, library)) {
		json_decref(child);
		return 0;
	}
	return failure_done(s, "edit", child, "linked with -l%s, which has %s", library,
			    s->subject);
}

/* ---- packages that are too much ---- */

static int drop_member(struct failure_case *s, int version_only)
{
	json_t *child = failure_child(s), *list = json_object_get(child, "packages"), *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (*s->subject && strcmp(doc_text(one, "name"), s->subject) != 0)
			continue;
		if (version_only && json_object_del(one, "version") == 0)
			return failure_done(s, "install", child, "any version of %s", s->subject);
		if (!version_only && *s->subject) {
			json_array_remove(list, i);
			return failure_done(s, "edit", child,
					    "%s is not installed: there is no such package",
					    s->subject);
		}
	}
	json_decref(child);
	return 0;
}

/* Removes only packages that a fix added, or names of the standard library. */
int fix_package_drop(struct failure_case *s)
{
	struct import i;

	import_find(s->lang, s->subject, &i);
	return i.kind == IMPORT_BUILTIN ? drop_member(s, 0) : 0;
}

int fix_unpin(struct failure_case *s)
{
	return drop_member(s, 1);
}

/* ---- files of the project ---- */

static void stem_of(const char *path, char out[FAILURE_TEXT])
{
	const char *base = strrchr(path, '/'), *dot;

	base = base ? base + 1 : path;
	dot = strrchr(base, '.');
	snprintf(out, FAILURE_TEXT, "%.*s", (int)(dot ? (size_t)(dot - base) : strlen(base)), base);
}

/* The extension of the program, of the import, or of modules of the language: [path] ending. */
static int is_source(const struct failure_case *s, const char *path)
{
	const char *has = strrchr(path, '.'), *said = strrchr(s->subject, '.');

	return s->lang && has &&
	       (lang_has_ending(s->lang, path) || (said && !strcmp(has, said)) ||
		!strcmp(has, rules_word(s->lang, "path", "ending")));
}

/* The file of the project with this or a similar stem. */
static const char *project_file(const struct failure_case *s, const char *stem,
				const char *not_this)
{
	const char *near = NULL;

	for (size_t i = 0; failure_path(s, i); i++) {
		const char *path = failure_path(s, i);
		char has[FAILURE_TEXT];

		stem_of(path, has);
		if (!strcmp(path, not_this) || !is_source(s, path))
			continue;
		if (!strcmp(has, stem))
			return path;
		if (strlen(has) > 2 && edit_distance(has, stem) <= 1)
			near = path;
		if (!strcasecmp(has, stem))
			near = path;
	}
	return near;
}

/* From the folder of one file to another: "../lib/x.py". */
static void fix_package_relative(const char *from, const char *to, char out[FAILURE_TEXT])
{
	size_t same = 0, n = 0;

	for (size_t i = 0; from[i] && from[i] == to[i]; i++)
		if (from[i] == '/')
			same = i + 1;
	out[0] = 0;
	for (const char *up = from + same; (up = strchr(up, '/')) && n + 4 < FAILURE_TEXT; up++)
		n += (size_t)snprintf(out + n, FAILURE_TEXT - n, "../");
	snprintf(out + n, FAILURE_TEXT - n, "%s%s", n ? "" : "./", to + same);
}

/* The quoted path in the program that ends with this text. */
static const char *quoted_way(const char *text, const char *tail, size_t *n)
{
	for (const char *at = text; (at = strstr(at, tail)); at++) {
		const char *from = at, *end = at + strlen(tail);

		while (from > text && !strchr("'\"`<\n ", from[-1]))
			from--;
		if (from == text || !strchr("'\"`<", from[-1]) || !strchr("'\"`>", *end) || !*end ||
		    (from < at && at[-1] != '/'))
			continue;
		*n = (size_t)(end - from);
		return from;
	}
	return NULL;
}

static int path_in_quotes(struct failure_case *s, const char *me, const char *file, const char *way)
{
	const char *text = failure_message(s, me), *slash = strrchr(s->subject, '/'), *at;
	auto_buf struct buf out = { 0 };
	size_t n;

	at = quoted_way(text, slash ? slash + 1 : s->subject, &n);
	if (!at)
		return 0;
	text_splice(&out, text, (size_t)(at - text), n, way);
	return failure_edit(s, me, &out, "%s is the project's own %s", s->subject, file);
}

/* How the search path of a language is changed: [path] of its rules. `insert` is added at the top,
 * {dir} is the path relative to the importing file; `literal`: the quoted path is changed. */
static int path_by_words(struct failure_case *s, const char *me, const char *file)
{
	const char *insert = rules_word(s->lang, "path", "insert");
	auto_buf struct buf text = { 0 };
	char way[FAILURE_TEXT];

	fix_package_relative(me, file, way);
	if (*rules_word(s->lang, "path", "literal"))
		return path_in_quotes(s, me, file, way);
	if (!*insert)
		return 0;
	*strrchr(way, '/') = 0;
	for (const char *p = insert; *p; p++) {
		if (!strncmp(p, "{dir}", 5)) {
			buf_puts(&text, way);
			p += 4;
		} else {
			buf_putc(&text, *p);
		}
	}
	buf_printf(&text, "\n%s", failure_message(s, me));
	return failure_edit(s, me, &text, "%s is the project's own %s: its folder is looked into",
			    s->subject, file);
}

/* The last part of what was imported: "helpers" of "app.helpers", "x" of "./lib/x.js" and of "A::x". */
static void last_part(const struct failure_case *s, char out[FAILURE_TEXT])
{
	const char *tail = s->subject, *dot = strrchr(s->subject, '.');

	if (*rules_word(s->lang, "path", "literal") || strchr(s->subject, '/')) {
		stem_of(s->subject, out);
		return;
	}
	if (dot && dot[1])
		tail = dot + 1;
	snprintf(out, FAILURE_TEXT, "%s", tail);
}

int fix_module_path(struct failure_case *s)
{
	const char *me = failure_main(s), *file;
	char stem[FAILURE_TEXT], has[FAILURE_TEXT];

	last_part(s, stem);
	file = project_file(s, stem, me);
	if (!file || !failure_message(s, me))
		return 0;
	stem_of(file, has);
	if (strcmp(has, stem) != 0 && !*rules_word(s->lang, "path", "literal"))
		return rename_import(s, stem, has, "a file of the project, mistyped");
	return path_by_words(s, me, file);
}
