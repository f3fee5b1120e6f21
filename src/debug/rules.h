/* rules.h - patterns for the output of runtimes and compilers, and their meaning: share/rules, a
 * file per language.
 * Owns: the rules and their regular expressions, read at first use, for the life of the process.
 *
 * languages = ["python"]           "*": all; a language's own files come first
 *
 * [[rules]]
 * name = "python-module"           subcategory, and what a new artifact says it is by
 * category = "dependency_missing"
 * on = "fault"                     where to look: see enum rule_on
 * match = "^ModuleNotFoundError: No module named '([^']+)'"
 * subject = 1                      the group that says what it is about
 * fix = ["module_path", "install"] the first that applies is used (fix.h)
 * why = "the module {1} is not there"
 *
 * Tables beside the rules are words for the fixes: [imports] a name -> the line that brings it, [renames]
 * a name of another version -> today's, [text] how the language writes comments and strings. */
#pragma once
#include "document/embedded.h"
#include "lang/lang.h"
#include <regex.h>

/* In the order of their weight. */
enum rule_on {
	ON_EXIT,   /* a line of the output, and this exit status */
	ON_FAULT,  /* the last line with an error of the runtime */
	ON_ERRORS, /* the first error of a compiler */
	ON_TEXT,   /* any other line */
	ON_COUNT,
};

enum { RULE_FIXES = 6, RULE_GROUPS = 6 };

struct fix;
struct rule {
	const char *name, *category, *match, *why;
	enum rule_on on;
	int exit; /* ON_EXIT */
	unsigned subject, meant, file, line, column;
	double confidence;
	int weak; /* only if no other rule matches anything */
	const struct fix *fixes[RULE_FIXES + 1];
	const struct toml_node *source;
	regex_t re;
};

struct rules {
	const char *file; /* "python.toml" */
	struct toml doc;
	struct rule *v;
	unsigned n;
};

unsigned rules_count(void);
const struct rules *rules_at(unsigned i);
int rules_speak_of(const struct rules *r, const struct lang *l); /* l NULL: of any */
/* The value of [table] key in the files of the language; "" if none. */
const char *rules_word(const struct lang *l, const char *table, const char *key);
/* The node at [table] of the language's first file that has it, or NULL. */
const struct toml_node *rules_table(const struct lang *l, const char *table);
/* Tests only: disables this rule; NULL: enables all. */
void rules_without(const char *name);
int rules_off(const struct rule *r);
