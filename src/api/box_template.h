/* box_template.h - the names of templates that clients know. All are this machine's one template, `base`: what a
 * program needs beyond this machine's own /usr it installs. One table for every API. */
#pragma once

struct buf;

struct box_template {
	const char *name;
	const char *
		build; /* its only build, as E2B's API names it; NULL: only /api/sandbox has this template */
	const char *language; /* /api/sandbox: of code whose file name does not tell */
	const char *start;    /* /api/sandbox: serves the port; NULL: the program itself does */
	int cells; /* /api/sandbox: code is a cell, whose state, results and plots are kept */
};

enum { BOX_TEMPLATES = 9 };
extern const struct box_template box_templates[BOX_TEMPLATES];

/* "base, code-interpreter-v1, ..."; e2b: only those that have a build. */
void box_template_names(struct buf *out, int e2b);
