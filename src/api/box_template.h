/* box_template.h - the names of templates that clients may use. All name the one template of this
 * machine, `base`; a program installs what /usr of the host does not have. One table for
 * every API. */
#pragma once

struct buf;

struct box_template {
	const char *name;
	const char *
		build; /* its only build, as E2B's API names it; NULL: only /api/sandbox has this template */
	const char *language; /* /api/sandbox: language of code whose file name does not show it */
	const char *start;    /* /api/sandbox: command that serves the port; NULL: the program
			       * itself serves it */
	int cells; /* /api/sandbox: code is executed as a cell, with state, results and plots */
};

enum { BOX_TEMPLATES = 9 };
extern const struct box_template box_templates[BOX_TEMPLATES];

/* "base, code-interpreter-v1, ..."; e2b: only those that have a build. */
void box_template_names(struct buf *out, int e2b);
