/* fix_entry.c - fixes for the entry point of a program. */
#include "debug/fix_steps.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { FUNCTIONS = 16, NAME = 64 };

struct functions {
	char name[FUNCTIONS][NAME + 1];
	unsigned n;
};

/* Top-level functions without parameters: [main] define; the name is in the given group, else in
 * the last one. */
static void functions_of(const struct lang *l, const char *text, struct functions *f)
{
	const char *define = rules_word(l, "main", "define");
	regmatch_t m[5];
	regex_t re;
	size_t g;

	f->n = 0;
	if (!*define || regcomp(&re, define, REG_EXTENDED) != 0)
		return;
	g = image_number(rules_table(l, "main"), "group");
	g = g ? g : re.re_nsub;
	while (*text && f->n < FUNCTIONS && g < ARRAY_LEN(m)) {
		size_t n = strcspn(text, "\n");
		char line[512];

		snprintf(line, sizeof(line), "%.*s", (int)n, text);
		if (regexec(&re, line, ARRAY_LEN(m), m, 0) == 0 && m[g].rm_so >= 0)
			snprintf(f->name[f->n++], NAME + 1, "%.*s", (int)(m[g].rm_eo - m[g].rm_so),
				 line + m[g].rm_so);
		text += n + (text[n] == '\n');
	}
	regfree(&re);
}

/* The number of occurrences followed by a bracket, including the definition. */
static unsigned fix_entry_calls(const char *text, const char *name)
{
	unsigned n = 0;

	for (const char *at = text; (at = text_word(at, name)); at += strlen(name))
		n += at[strlen(name)] == '(';
	return n;
}

/* The function that the program forgot to call: main, or the only one, or the only one without a
 * call. */
static const char *to_call(const char *text, const struct functions *f)
{
	const char *alone = NULL;
	unsigned uncalled = 0;

	for (unsigned i = 0; i < f->n; i++) {
		if (fix_entry_calls(text, f->name[i]) > 1)
			continue;
		if (!strcasecmp(f->name[i], "main"))
			return f->name[i];
		alone = f->name[i];
		uncalled++;
	}
	return uncalled == 1 ? alone : NULL;
}

static void fix_entry_fill(struct buf *out, const char *pattern, const char *name)
{
	const char *hole;

	while ((hole = strstr(pattern, "{}"))) {
		buf_add(out, pattern, (size_t)(hole - pattern));
		buf_puts(out, name);
		pattern = hole + 2;
	}
	buf_puts(out, pattern);
}

static int append_call(struct failure_case *s, const char *path, const char *text, const char *name,
		       const char *pattern)
{
	auto_buf struct buf out = { 0 };

	buf_printf(&out, "%s%s\n", text, *text && text[strlen(text) - 1] == '\n' ? "" : "\n");
	fix_entry_fill(&out, pattern, name);
	return failure_edit(s, path, &out, "%s is called: nothing else was", name);
}

/* A language that starts at main: renames the only function, or a mistyped one. */
int fix_main_wrapper(struct failure_case *s)
{
	const char *path = doc_text(s->artifact, "entry"), *text = failure_message(s, path);
	auto_buf struct buf out = { 0 };
	struct functions f;
	const char *name;

	if (!text)
		return 0;
	functions_of(s->lang, text, &f);
	for (unsigned i = 0; i < f.n; i++)
		if (!strcasecmp(f.name[i], "main") || !strcmp(f.name[i], "mian") ||
		    !strcmp(f.name[i], "mani")) {
			text_rename(&out, text, f.name[i], "main");
			return failure_edit(s, path, &out, "%s is main, mistyped", f.name[i]);
		}
	name = to_call(text, &f);
	return name && append_call(s, path, text, name, rules_word(s->lang, "main", "call"));
}

/* A script that only defines functions: it printed nothing, although output was expected. */
int fix_call_main(struct failure_case *s)
{
	const char *path = doc_text(s->artifact, "entry"), *text = failure_message(s, path);
	const char *says = rules_word(s->lang, "main", "says"), *name, *pattern;
	const json_t *status = json_object_get(s->phase, "exit_code");
	struct functions f;

	if (!text || *doc_text(s->phase, "stdout") || json_integer_value(status) || !*says)
		return 0;
	functions_of(s->lang, text, &f);
	name = to_call(text, &f);
	pattern = rules_word(s->lang, "main", strstr(text, says) ? "call" : "print");
	if (!name || !*pattern || !append_call(s, path, text, name, pattern))
		return 0;
	s->category = "entry_point";
	return 1;
}

/* Go executes package main only. */
int fix_package_main(struct failure_case *s)
{
	const char *path = doc_text(s->artifact, "entry"), *text = failure_message(s, path);
	const char *at = text ? strstr(text, "package ") : NULL;
	auto_buf struct buf out = { 0 };
	size_t n;

	if (!at || (at != text && at[-1] != '\n'))
		return 0;
	n = strcspn(at, "\n");
	if (!strncmp(at, "package main", n))
		return 0;
	text_splice(&out, text, (size_t)(at - text), n, "package main");
	return failure_edit(s, path, &out, "the program is package main");
}

/* Renames the file as the language requires: subject is the name without extension. */
int fix_rename_file(struct failure_case *s)
{
	const char *path = failure_main(s), *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
	json_t *text = json_object_get(json_object_get(s->artifact, "files"), path), *child;
	char name[2 * FAILURE_TEXT];

	if (!text || !dot || !*s->subject)
		return 0;
	snprintf(name, sizeof(name), "%.*s%s%s", slash ? (int)(slash + 1 - path) : 0, path,
		 s->subject, dot);
	if (json_object_get(json_object_get(s->artifact, "files"), name))
		return 0;
	child = failure_child(s);
	json_object_set(json_object_get(child, "files"), name, text);
	json_object_del(json_object_get(child, "files"), path);
	if (!strcmp(doc_text(child, "entry"), path))
		json_object_set_new(child, "entry", json_string(name));
	return failure_done(s, "rename", child, "%s is now %s, as what is in it", path, name);
}

/* Another file of the project has the entry point. */
int fix_entry_file(struct failure_case *s)
{
	const char *has = rules_word(s->lang, "main", "entry");
	const char *entry = doc_text(s->artifact, "entry");

	for (size_t i = 0; *has && failure_path(s, i); i++) {
		const char *path = failure_path(s, i);
		json_t *child;

		if (!strcmp(path, entry) || !lang_has_ending(s->lang, path) ||
		    !failure_message(s, path) || !strstr(failure_message(s, path), has))
			continue;
		child = failure_child(s);
		json_object_set_new(child, "entry", json_string(path));
		return failure_done(s, "rename", child, "it begins in %s", path);
	}
	return 0;
}

/* A language whose functions are in classes: main goes before the last brace. */
int fix_main_inside(struct failure_case *s)
{
	const char *path = doc_text(s->artifact, "entry"), *text = failure_message(s, path);
	const char *pattern = rules_word(s->lang, "main", "inside"), *name;
	const char *last = text ? strrchr(text, '}') : NULL;
	auto_buf struct buf out = { 0 }, with = { 0 };
	struct functions f;

	if (!last || !*pattern)
		return 0;
	functions_of(s->lang, text, &f);
	name = to_call(text, &f);
	if (!name)
		return 0;
	fix_entry_fill(&with, pattern, name);
	text_splice(&out, text, (size_t)(last - text), 0, buf_str(&with));
	return failure_edit(s, path, &out, "main is there and calls %s", name);
}
