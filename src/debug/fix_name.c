/* fix_name.c - fixes for undefined names. */
#include "debug/fix_steps.h"
#include "base/edit_distance.h"
#include "base/cleanup.h"
#include "lang/package.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- imports ---- */

/* The position of a new import: after the lines that must come first ([text] top matches them: a
 * #!, a package, a docstring). */
static size_t import_place(const struct lang *l, const char *text)
{
	const char *top = rules_word(l, "text", "top");
	size_t at = 0, place = 0;
	regex_t re;

	if (!*top || regcomp(&re, top, REG_EXTENDED | REG_NOSUB) != 0)
		return 0;
	/* The last line that matches; empty lines between them do not end the search. */
	for (unsigned i = 0; i < 40 && text[at]; i++) {
		size_t n = strcspn(text + at, "\n");
		char line[FAILURE_TEXT];

		snprintf(line, sizeof(line), "%.*s", (int)n, text + at);
		at += n + (text[at + n] != 0);
		if (regexec(&re, line, 0, NULL, 0) == 0)
			place = at;
		else if (*line)
			break;
	}
	regfree(&re);
	return place;
}

static int add_import(struct failure_case *s, const char *path, const char *name, const char *line)
{
	const char *text = failure_message(s, path);
	auto_buf struct buf out = { 0 }, with = { 0 };
	size_t at;

	if (!text || !*line || strstr(text, line))
		return 0;
	at = import_place(s->lang, text);
	buf_printf(&with, "%s%s\n", at && text[at - 1] != '\n' ? "\n" : "", line);
	text_splice(&out, text, at, 0, buf_str(&with));
	return failure_edit(s, path, &out, "%s needs: %s", name, line);
}

/* A well-known name: [imports] has the line that imports it. */
int fix_import(struct failure_case *s)
{
	return add_import(s, failure_main(s), s->subject,
			  rules_word(s->lang, "imports", s->subject));
}

/* ---- names that are nearly right ---- */

enum { NAME = 64, NEAR_MOST = 20000 };

/* The next name of a text; names in strings and comments are harmless and included. */
static const char *next_name(const char *at, char out[NAME + 1])
{
	size_t n = 0;

	while (*at && !isalpha((unsigned char)*at) && *at != '_')
		at++;
	while (isalnum((unsigned char)at[n]) || at[n] == '_')
		n++;
	snprintf(out, NAME + 1, "%.*s", (int)(n < NAME ? n : NAME), at);
	return n ? at + n : NULL;
}

/* The allowed edit distance: one letter for short names, two for long ones. */
static unsigned fix_name_slips(const char *name)
{
	size_t n = strlen(name);

	return n < 3 ? 0 : n < 6 ? 1 : 2;
}

static void fix_name_nearer(const char *wanted, const char *have, char best[NAME + 1],
			    unsigned *least)
{
	unsigned far = edit_distance(wanted, have);

	if (far > 0 && far < *least && strlen(have) > 2) {
		*least = far;
		snprintf(best, NAME + 1, "%.*s", NAME, have);
	}
}

/* The nearest name of the program or of the language ([text] words). */
static int near_name(const struct failure_case *s, const char *text, const char *table,
		     char best[NAME + 1])
{
	const struct toml_node *words = rules_table(s->lang, "words");
	const struct toml_node *list = words ? toml_get(words, table) : NULL;
	unsigned least = fix_name_slips(s->subject) + 1;
	char name[NAME + 1];

	best[0] = 0;
	for (unsigned i = 0; (text = next_name(text, name)) && i < NEAR_MOST; i++)
		if (strcmp(name, s->subject) != 0)
			fix_name_nearer(s->subject, name, best, &least);
	for (const struct toml_node *w = list ? list->in.first : NULL; w; w = w->next)
		fix_name_nearer(s->subject, w->text, best, &least);
	/* A name that differs only in case: True, NULL, Length. */
	for (const struct toml_node *w = list ? list->in.first : NULL; w; w = w->next)
		if (!strcasecmp(w->text, s->subject) && strcmp(w->text, s->subject) != 0)
			snprintf(best, NAME + 1, "%s", w->text);
	return *best != 0;
}

static int rename_to(struct failure_case *s, const char *path, const char *text, const char *to)
{
	auto_buf struct buf out = { 0 };

	if (!text_rename(&out, text, s->subject, to))
		return 0;
	return failure_edit(s, path, &out, "%s is %s, mistyped", s->subject, to);
}

/* The suggestion of the runtime. */
int fix_meant(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path);

	return text && *s->meant && rename_to(s, path, text, s->meant);
}

int fix_near(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path);
	char best[NAME + 1];

	return text && near_name(s, text, "names", best) && rename_to(s, path, text, best);
}

int fix_near_member(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path);
	char best[NAME + 1];

	return text && near_name(s, "", "members", best) && rename_to(s, path, text, best);
}

/* ---- what a compiler forbids though it would do no harm ---- */

static int line_at(const struct failure_case *s, const char *text, const char **line, size_t *n)
{
	*line = text && s->line > 0 ? text_line(text, s->line, n) : NULL;
	return *line != NULL;
}

/* Removes the line of an unused import. */
int fix_drop_line(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path), *line;
	auto_buf struct buf out = { 0 };
	size_t n;

	if (!line_at(s, text, &line, &n) || !strstr(line, s->subject))
		return 0;
	text_splice(&out, text, (size_t)(line - text), n + (line[n] == '\n'), "");
	return failure_edit(s, path, &out, "%s is not used and is left out", s->subject);
}

static int is_balanced(const char *line, size_t n)
{
	int depth = 0;

	for (size_t i = 0; i < n; i++)
		depth += !!strchr("([", line[i]) - !!strchr(")]", line[i]);
	return depth == 0;
}

/* Uses an unused variable in a statement without effect. */
int fix_use_it(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path), *line;
	auto_buf struct buf out = { 0 }, with = { 0 };
	size_t n;

	if (!line_at(s, text, &line, &n) || !is_balanced(line, n))
		return 0;
	buf_printf(&with, "\n%.*s_ = %s", (int)strspn(line, " \t"), line, s->subject);
	text_splice(&out, text, (size_t)(line - text) + n, 0, buf_str(&with));
	return failure_edit(s, path, &out, "%s is not used; the compiler now ignores that",
			    s->subject);
}

/* let x = ... that is changed later. */
int fix_mutable(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path);
	auto_buf struct buf out = { 0 };
	char was[FAILURE_TEXT + 8], now[FAILURE_TEXT + 8];

	snprintf(was, sizeof(was), "let %s", s->subject);
	snprintf(now, sizeof(now), "let mut %s", s->subject);
	return text && text_rename(&out, text, was, now) &&
	       failure_edit(s, path, &out, "%s may be changed: let mut", s->subject);
}

/* ---- what another version has ---- */

/* from A import B, where today B is in C: [import_renames] "A.B" = "C". */
int fix_renamed_import(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path), *at;
	char key[2 * FAILURE_TEXT + 2], was[FAILURE_TEXT + 16], now[FAILURE_TEXT + 16];
	const char *today;
	auto_buf struct buf out = { 0 };

	snprintf(key, sizeof(key), "%s.%s", s->group[2], s->subject);
	today = rules_word(s->lang, "import_renames", key);
	snprintf(was, sizeof(was), "from %s import", s->group[2]);
	snprintf(now, sizeof(now), "from %s import", today);
	at = text && *today ? strstr(text, was) : NULL;
	if (!at || memchr(at, ',', strcspn(at, "\n")))
		return 0;
	text_splice(&out, text, (size_t)(at - text), strlen(was), now);
	return failure_edit(s, path, &out, "%s is in %s today", s->subject, today);
}

/* from A import b, where b is nearly a name that is known from A: "from math import sqroot". */
int fix_near_import(struct failure_case *s)
{
	const struct toml_node *imports = rules_table(s->lang, "imports");
	const char *path = failure_main(s), *text = failure_message(s, path);
	unsigned least = fix_name_slips(s->subject) + 1;
	char best[NAME + 1] = "", from[FAILURE_TEXT + 16];

	snprintf(from, sizeof(from), "from %s import ", s->group[2]);
	for (const struct toml_node *k = imports ? imports->in.first : NULL; k; k = k->next)
		if (!strncmp(k->text, from, strlen(from)))
			fix_name_nearer(s->subject, k->key, best, &least);
	if (!text || !*best || !rename_to(s, path, text, best))
		return 0;
	s->category = "name_error";
	return 1;
}

/* Imports the file of the project that is used as a module. */
int fix_shadow(struct failure_case *s)
{
	const char *entry = doc_text(s->artifact, "entry"), *dot = strrchr(entry, '.');
	char file[FAILURE_TEXT + 8], to[FAILURE_TEXT + 16];
	json_t *child, *files, *text;

	if (!dot)
		return 0;
	snprintf(file, sizeof(file), "%s%s", s->group[2], dot);
	snprintf(to, sizeof(to), "my_%s", file);
	text = json_object_get(json_object_get(s->artifact, "files"), file);
	if (!text || json_object_get(json_object_get(s->artifact, "files"), to))
		return 0;
	child = failure_child(s);
	files = json_object_get(child, "files");
	json_object_set(files, to, text);
	json_object_del(files, file);
	if (!strcmp(entry, file))
		json_object_set_new(child, "entry", json_string(to));
	return failure_done(s, "rename", child, "%s hid the module of that name; it is %s now",
			    file, to);
}

/* The last version that had it: [pins] "module.name" = "package version". */
int fix_pin(struct failure_case *s)
{
	const char *pin, *version, *manager = s->lang ? s->lang->packages.manager : "";
	char key[2 * FAILURE_TEXT + 2], name[NAME + 1];
	json_t *child, *list, *one;
	size_t i;

	snprintf(key, sizeof(key), "%s.%s", s->group[2], s->subject);
	pin = rules_word(s->lang, "pins", key);
	version = strchr(pin, ' ');
	if (!version)
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)(version - pin), pin);
	child = failure_child(s);
	list = json_object_get(child, "packages");
	json_array_foreach(list, i, one) if (!strcmp(doc_text(one, "name"), name))
	{
		json_array_remove(list, i);
		break;
	}
	json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "manager", manager, "name", name,
					      "version", version + 1));
	return failure_done(s, "install", child, "%s is in %s up to %s only", s->subject, name,
			    version + 1);
}

/* ---- C++ and Java ---- */

int fix_using_std(struct failure_case *s)
{
	return add_import(s, failure_main(s), s->subject, "using namespace std;");
}

/* An undefined symbol of the linker: a missing function, or a mistyped name. */
int fix_undefined(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path);

	s->category = "name_error";
	if (!text || text_word(text, s->subject))
		return 0;
	return fix_near(s);
}

/* An undeclared exception: main declares all of them. */
int fix_throws(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path), *at = text;
	auto_buf struct buf out = { 0 };
	size_t n;

	/* The enclosing method: the last one that starts above the line. */
	for (long line = s->line; line > 0 && text; line--) {
		at = text_line(text, line, &n);
		if (!at)
			return 0;
		if (n > 2 && at[n - 1] == '{' && memmem(at, n, ") {", 3) && memmem(at, n, "(", 1) &&
		    at[strspn(at, " \t")] != 'i' && at[strspn(at, " \t")] != 'f' &&
		    at[strspn(at, " \t")] != 'w' && at[strspn(at, " \t")] != 't' &&
		    !memmem(at, n, "throws", 6)) {
			text_splice(&out, text, (size_t)(at - text) + n - 1, 0,
				    "throws Exception ");
			return failure_edit(s, path, &out, "the method declares what it may throw");
		}
	}
	return 0;
}

/* Perl: declared where it is first used, if that is an assignment at the margin. */
int fix_my(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path);
	auto_buf struct buf out = { 0 };
	char name[FAILURE_TEXT + 2];
	const char *at;

	snprintf(name, sizeof(name), "$%s", s->subject);
	at = text ? strstr(text, name) : NULL;
	if (!at || (at != text && at[-1] != '\n') || strncmp(at + strlen(name), " =", 2) != 0)
		return 0;
	text_splice(&out, text, (size_t)(at - text), 0, "my ");
	return failure_edit(s, path, &out, "%s is declared: my", name);
}
