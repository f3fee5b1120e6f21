/* package.h - package requirements: checked, made canonical, and combined into one key. Pure;
 * nothing is looked up and nothing is run.
 *
 * A name is passed to a package manager as one argument, never through a shell. It is checked by
 * the grammar of the manager all the same: options, paths and URLs are rejected with the reason. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <stddef.h>

enum package_manager { PM_PIP, PM_NPM, PM_GEM, PM_CARGO, PM_GO, PM_APT, PM_COUNT };

enum { PACKAGE_TEXT = 214, PACKAGES_MOST = 200, PACKAGES_KEY = 64 };

const char *package_manager_name(enum package_manager m); /* "pip" */
int package_manager_named(const char *name);              /* -1: there is none */
int package_manager_of(const char *language);             /* language of its programs; -1: none */

struct packages { /* canonical, sorted, without duplicates. Zero is an empty set */
	enum package_manager manager;
	char **v;
	unsigned n;
};
void packages_fini(struct packages *p);

/* One requirement in the notation of its manager: "numpy", "pandas[excel]>=1.5,<2",
 * "@scope/x@^1". */
must_check int packages_add(struct packages *p, const char *text, struct err *e);
/* requirements.txt: comments and one requirement per line; options are refused. */
must_check int packages_add_lines(struct packages *p, const char *text, size_t n, struct err *e);
/* The `# /// script` block of a Python file (its dependencies), if there is one. */
must_check int packages_add_script(struct packages *p, const char *code, size_t n, struct err *e);

/* The key of the set; runtime: the interpreter for which it is built. */
void packages_key(const struct packages *p, const char *runtime, char out[PACKAGES_KEY + 1]);
void packages_text(const struct packages *p, struct buf *out); /* "numpy pandas==1.5" */

/* The name alone, without extras and version. */
void package_name(enum package_manager m, const char *spec, char out[PACKAGE_TEXT + 1]);
/* Popular packages with similar names, the nearest first; returns how many. */
unsigned package_near(enum package_manager m, const char *name, const char *out[], unsigned most);
/* The popular package whose name differs by one letter, or NULL. */
const char *package_mistaken(enum package_manager m, const char *name);
