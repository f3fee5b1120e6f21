/* detect_language.c - see detect_language.h. */
#include "plan/detect_language.h"
#include "base/cleanup.h"
#include "lang/lang.h"

#include <string.h>

/* CAREFUL: also an everyday word. It counts only after "in" or before "program". */
enum how { ALWAYS, CAREFUL, CAPITAL };

static const struct {
	const char *word, *lang;
	enum how how;
} names[] = {
	{ "python", "python", ALWAYS },
	{ "python3", "python", ALWAYS },
	{ "py", "python", CAREFUL },
	{ "javascript", "node", ALWAYS },
	{ "js", "node", ALWAYS },
	{ "node.js", "node", ALWAYS },
	{ "nodejs", "node", ALWAYS },
	{ "node", "node", CAREFUL },
	{ "typescript", "typescript", ALWAYS },
	{ "ts", "typescript", CAREFUL },
	{ "bash", "bash", ALWAYS },
	{ "shell", "bash", CAREFUL },
	{ "sh", "bash", CAREFUL },
	{ "c++", "c++", ALWAYS },
	{ "cpp", "c++", ALWAYS },
	{ "c", "c", CAPITAL },
	{ "golang", "go", ALWAYS },
	{ "go", "go", CAPITAL },
	{ "rust", "rust", ALWAYS },
	{ "java", "java", ALWAYS },
	{ "ruby", "ruby", CAREFUL },
	{ "php", "php", ALWAYS },
	{ "perl", "perl", ALWAYS },
	{ "lua", "lua", ALWAYS },
	{ "r", "r", CAPITAL },
	{ "rscript", "r", ALWAYS },
	{ "julia", "julia", CAREFUL },
};

static const struct {
	const char *word, *lang;
} libraries[] = {
	{ "numpy", "python" },   { "pandas", "python" },  { "matplotlib", "python" },
	{ "sklearn", "python" }, { "scipy", "python" },   { "flask", "python" },
	{ "django", "python" },  { "fastapi", "python" }, { "pytest", "python" },
	{ "asyncio", "python" }, { "express", "node" },   { "express.js", "node" },
	{ "lodash", "node" },    { "axios", "node" },     { "npm", "node" },
	{ "awk", "bash" },       { "sed", "bash" },       { "grep", "bash" },
	{ "tokio", "rust" },     { "cargo", "rust" },     { "goroutine", "go" },
	{ "goroutines", "go" },  { "ggplot2", "r" },      { "dplyr", "r" },
	{ "rails", "ruby" },     { "laravel", "php" },    { "spring", "java" },
};

static int is_one_of(const struct words *w, unsigned i, const char *const *list)
{
	if (i >= w->n)
		return 0;
	for (; *list; list++)
		if (word_is(&w->all[i], *list))
			return 1;
	return 0;
}

static int behind_in(const struct words *w, unsigned i)
{
	static const char *const before[] = { "in", "using", "with", "language", NULL };

	return i && is_one_of(w, i - 1, before);
}

static int before_program(const struct words *w, unsigned i)
{
	static const char *const after[] = {
		"program",   "script",         "code",     "function",
		"class",     "snippet",        "app",      "application",
		"programme", "implementation", "language", "tool",
		"server",    "programs",       "scripts",  NULL
	};

	return is_one_of(w, i + 1, after);
}

static int detect_counts(const struct words *w, unsigned i, enum how how)
{
	const struct word *one = &w->all[i];

	if (how == ALWAYS)
		return 1;
	if (how == CAPITAL && !(one->p[0] >= 'A' && one->p[0] <= 'Z') && !before_program(w, i) &&
	    !(behind_in(w, i) && one->n > 1))
		return 0;
	return behind_in(w, i) || before_program(w, i) ||
	       (how == CAPITAL && i && word_is(&w->all[i - 1], "a")) ||
	       (i + 1 < w->n && word_is_mark(&w->all[i + 1], ':') && i == 0);
}

/* A name after "in" is the wanted language; a name alone may be the topic. */
static const struct lang *by_name(const struct words *w, unsigned char *spoken)
{
	const char *found = NULL;
	int best = 0;

	for (unsigned i = 0; i < w->n; i++)
		for (unsigned k = 0; k < ARRAY_LEN(names); k++) {
			int rank;

			if (!word_is(&w->all[i], names[k].word) ||
			    !detect_counts(w, i, names[k].how))
				continue;
			spoken[i] = 1;
			rank = behind_in(w, i) ? 3 : before_program(w, i) ? 2 : 1;
			if (rank > best) {
				best = rank;
				found = names[k].lang;
			}
		}
	return found ? lang_named(found) : NULL;
}

static const struct lang *by_file(const struct words *w)
{
	for (unsigned i = 0; i < w->n; i++) {
		char name[256];
		const struct lang *l;

		if (w->all[i].kind != WORD_FILE || w->all[i].n >= sizeof(name))
			continue;
		memcpy(name, w->all[i].p, w->all[i].n);
		name[w->all[i].n] = 0;
		l = lang_of(name, "", 0);
		if (l)
			return l;
	}
	return NULL;
}

static const struct lang *by_library(const struct words *w)
{
	for (unsigned i = 0; i < w->n; i++)
		for (unsigned k = 0; k < ARRAY_LEN(libraries); k++)
			if (word_is(&w->all[i], libraries[k].word))
				return lang_named(libraries[k].lang);
	return NULL;
}

const struct lang *detect_language(const struct words *w, unsigned char *spoken)
{
	const struct lang *l = by_name(w, spoken);

	if (!l)
		l = by_file(w);
	return l ? l : by_library(w);
}
