/* scan.c - see scan.h. Words are searched first, in one pass each; only where one occurs, a regular
 * expression is applied to some lines of bounded length. So a hostile text is not slower than a
 * long one. */
#include "execute/scan.h"
#include "document/embedded.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "lang/lang.h"

#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

enum {
	MOST_RULES = 128,
	WINDOW = 1024, /* bytes that an expression sees */
	BEFORE = 256,  /* bytes before the word */
	LINES_MOST = 8,
	TRIES = 2000, /* places of one rule in one file */
	FILE_MOST = 4 << 20,
	FINDINGS = 100,
};

struct scan {
	const struct toml_node *languages, *has, *all;
	const char *name, *action, *why;
	unsigned lines;
	int matches; /* re is there */
	regex_t re;
};

static struct scan scans[MOST_RULES];
static unsigned nscans;

/* ---- rules ---- */

static void read_rule(const struct image *i, const struct toml_node *root,
		      const struct toml_node *n)
{
	const char *match = image_text(n, "match");
	struct scan *s = &scans[nscans++];

	if (nscans > MOST_RULES)
		image_bad(i->name, n, "too many rules");
	*s = (struct scan){
		.languages = toml_get(root, "languages"),
		.has = toml_get(n, "has"),
		.all = toml_get(n, "all"),
		.name = image_text(n, "name"),
		.action = image_text(n, "action"),
		.why = image_text(n, "why"),
		.lines = image_number(n, "lines"),
		.matches = *match != 0,
	};
	if (!s->languages || !s->has || !*s->name || !*s->why || s->lines > LINES_MOST ||
	    (strcmp(s->action, "warn") != 0 && strcmp(s->action, "block") != 0))
		image_bad(i->name, n, "a rule has a name, words, an action and a why");
	if (s->matches && regcomp(&s->re, match, REG_EXTENDED | REG_ICASE | REG_NOSUB) != 0)
		image_bad(i->name, n, "match: not a regular expression");
}

static void rules_ready(void)
{
	static struct toml docs[16];

	if (nscans)
		return;
	for (unsigned i = 0; scan_images[i].text; i++) {
		const struct toml_node *list;

		if (i == ARRAY_LEN(docs))
			abort();
		image_read(&scan_images[i], &docs[i]);
		list = toml_get(docs[i].root, "rules");
		for (const struct toml_node *n = list ? list->in.first : NULL; n; n = n->next)
			read_rule(&scan_images[i], docs[i].root, n);
	}
}

/* ---- one file ---- */

struct scan_file {
	const char *path, *text;
	char *small; /* the text in small letters */
	size_t n;
	const struct lang *lang;
};

static const char *scan_find(const struct scan_file *f, size_t from, const char *word)
{
	return memmem(f->small + from, f->n - from, word, strlen(word));
}

static int has_all(const struct scan_file *f, const struct toml_node *groups)
{
	for (const struct toml_node *g = groups ? groups->in.first : NULL; g; g = g->next) {
		int found = 0;

		for (const struct toml_node *w = g->in.first; w && !found; w = w->next)
			found = scan_find(f, 0, w->text) != NULL;
		if (!found)
			return 0;
	}
	return 1;
}

/* The line around a place, and the `lines` lines after it. */
static void scan_look(const struct scan_file *f, size_t at, unsigned lines, char out[WINDOW + 1])
{
	size_t from = at, to = at;

	while (from > 0 && at - from < BEFORE && f->text[from - 1] != '\n')
		from--;
	for (unsigned seen = 0; to < f->n && to - from < WINDOW; to++)
		if (f->text[to] == '\n' && seen++ == lines)
			break;
	memcpy(out, f->text + from, to - from);
	out[to - from] = 0;
}

/* The offset where the rule matches; f->n: nowhere. Sets *tired if there were too many places. */
static size_t scan_place(const struct scan *s, const struct scan_file *f, int *tired)
{
	char window[WINDOW + 1];
	unsigned tries = 0;

	for (const struct toml_node *w = s->has->in.first; w; w = w->next)
		for (const char *at = f->small;
		     (at = scan_find(f, (size_t)(at - f->small), w->text)); at++) {
			if (!s->matches)
				return (size_t)(at - f->small);
			if (++tries > TRIES) {
				*tired = 1;
				return f->n;
			}
			scan_look(f, (size_t)(at - f->small), s->lines, window);
			if (regexec(&s->re, window, 0, NULL, 0) == 0)
				return (size_t)(at - f->small);
		}
	return f->n;
}

static long line_of(const struct scan_file *f, size_t at)
{
	long line = 1;

	for (size_t i = 0; i < at; i++)
		line += f->text[i] == '\n';
	return line;
}

static void scan_found(json_t *all, const char *rule, const char *file, long line, const char *why,
		       const char *action)
{
	if (json_array_size(all) < FINDINGS)
		json_array_append_new(all, json_pack("{s:s, s:s, s:I, s:s, s:s}", "rule", rule,
						     "file", file, "line", (json_int_t)line, "why",
						     why, "action", action));
}

static int speaks_of(const struct scan *s, const struct lang *l)
{
	return image_has(s->languages, "*") || (l && image_has(s->languages, l->name));
}

static void scan_file(const struct scan_file *f, json_t *all)
{
	int tired = 0;

	for (unsigned i = 0; i < nscans; i++) {
		size_t at;

		if (!speaks_of(&scans[i], f->lang) || !has_all(f, scans[i].all))
			continue;
		at = scan_place(&scans[i], f, &tired);
		if (at < f->n)
			scan_found(all, scans[i].name, f->path, line_of(f, at), scans[i].why,
				   scans[i].action);
	}
	if (tired)
		scan_found(all, "too-much", f->path, 1, "too many suspicious words to look at each",
			   "warn");
}

static void scan_text(const struct lang *l, const char *path, const json_t *text, json_t *all)
{
	struct scan_file f = { .path = path,
			       .text = json_string_value(text),
			       .n = json_string_length(text) };
	const struct lang *own = lang_of(path, f.text, f.n < 256 ? f.n : 256);
	auto_free char *small = NULL;

	if (!f.text || !f.n)
		return;
	/* A file that is too large is scanned up to the limit, and this is reported. */
	if (f.n > FILE_MOST) {
		f.n = FILE_MOST;
		scan_found(all, "too-large", path, 1, "too large to look at all of it", "warn");
	}
	f.lang = own ? own : l;
	f.small = small = malloc(f.n + 1);
	if (!small)
		abort();
	for (size_t i = 0; i < f.n; i++)
		small[i] = (char)tolower((unsigned char)f.text[i]);
	scan_file(&f, all);
}

/* ---- all of them ---- */

json_t *scan_files(const char *language, const json_t *files)
{
	const struct lang *l = language ? lang_named(language) : NULL;
	json_t *all = json_array(), *sorted = json_array(), *one;
	const json_t *text;
	const char *path;
	size_t i;

	rules_ready();
	json_object_foreach((json_t *)files, path, text) scan_text(l, path, text, all);
	for (int block = 1; block >= 0; block--)
		json_array_foreach(all, i, one) if ((strcmp(doc_text(one, "action"), "block") ==
						     0) == block) json_array_append(sorted, one);
	json_decref(all);
	return sorted;
}

int scan_apply(json_t *findings, const char *policy)
{
	json_t *one;
	size_t i;
	int blocked = 0;

	if (policy && !strcmp(policy, "off")) {
		json_array_clear(findings);
		return 0;
	}
	if (policy && *policy && strcmp(policy, "warn") != 0 && strcmp(policy, "block") != 0)
		return -1;
	json_array_foreach(findings, i, one)
	{
		if (policy && !strcmp(policy, "warn"))
			json_object_set_new(one, "action", json_string("warn"));
		blocked = blocked || !strcmp(doc_text(one, "action"), "block");
	}
	return blocked;
}

json_t *scan_rules(void)
{
	json_t *all = json_array();

	rules_ready();
	for (unsigned i = 0; i < nscans; i++) {
		json_t *languages = json_array();

		for (const struct toml_node *l = scans[i].languages->in.first; l; l = l->next)
			json_array_append_new(languages, json_string(l->text));
		json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:o}", "rule", scans[i].name,
						     "action", scans[i].action, "why", scans[i].why,
						     "languages", languages));
	}
	return all;
}
