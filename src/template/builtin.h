/* builtin.h - names of templates that every daemon has without a build. All start from the host's
 * /usr, as `base` does. A built template of the same name replaces one of them, except `base`. */
#pragma once

struct buf;

struct builtin_template {
	const char *name;
	const char *build;    /* its only build; NULL: only /api/sandbox has this template */
	const char *language; /* /api/sandbox: language of code whose file name does not show it */
	const char *start;    /* /api/sandbox: command that serves the port; NULL: the program
			       * itself serves it */
	int cells;   /* /api/sandbox: code is executed as a cell, with state, results and plots */
	int reloads; /* /api/sandbox: the server of `start` reads changed files by itself */
};

enum { BUILTIN_TEMPLATES = 9 };
extern const struct builtin_template builtin_templates[BUILTIN_TEMPLATES];

const struct builtin_template *builtin_template_find(const char *name); /* NULL: none */
/* "base, code-interpreter-v1, ..."; e2b: only those that have a build. */
void builtin_template_names(struct buf *out, int e2b);
