/* spec.h - how a Jupyter kernel is started: its kernel.json, found by name and treated as
 * untrusted.
 * Owns: the document; argv and the rest are views into it.
 *
 * A spec is a folder NAME with a kernel.json in it, in one of the places where Jupyter looks. In a box
 * its user may have written it, so every part is checked and bounded; what it then starts is a program
 * of that user and no more. */
#pragma once
#include "base/err.h"
#include <jansson.h>
#include <stddef.h>

#define SPEC_PREFIX "jupyter:" /* prefix of a name in lists of languages */
enum {
	SPEC_NAME = 24, /* characters of a name; with the prefix it is a word of the store */
	SPEC_BYTES = 64 * 1024, /* of a kernel.json */
	SPEC_WORDS = 64,        /* of its argv, and of its env */
	SPEC_WORD = 4096,       /* bytes of one */
	SPEC_LISTED = 64,       /* kernels that a list has */
};

struct kernel_spec {
	char name[SPEC_NAME + 1];     /* as its folder is called */
	char *folder;                 /* {resource_dir} */
	json_t *doc;                  /* checked: argv, env, display_name, language */
	const json_t *argv, *env;     /* env may be NULL */
	const char *title, *language; /* "" if it does not say */
	int by_message;               /* it is interrupted by a message, not by SIGINT */
};

/* Letters, digits, dot, dash, underscore; dot and dash not at the beginning. */
int spec_name_valid(const char *name);
/* The search path, in order, as NULL-terminated paths. home NULL or "": without the user's
 * folder. */
#define SPEC_PLACES 4
struct spec_places {
	char home[SPEC_WORD];
	const char *path[SPEC_PLACES];
};
void spec_places(struct spec_places *out, const char *home);

/* ERR_NOT_FOUND: no kernel of that name; the message lists the others. */
must_check int spec_find(struct kernel_spec *out, const struct spec_places *places,
			 const char *name, struct err *e);
/* The text of a kernel.json. On -1 there is nothing to free. */
must_check int spec_parse(struct kernel_spec *out, const char *text, size_t len, struct err *e);
void spec_fini(struct kernel_spec *s);

/* All valid kernels, sorted by name, at most SPEC_LISTED: [{name: "jupyter:NAME", title,
 * language}]. */
json_t *spec_json(const struct spec_places *places);
