/* ignore.h - which files of a folder are not part of a build: .atollignore, .dockerignore, .e2bignore.
 * A line is a pattern of glob.h, from the folder down; it is for all that is in a folder, too. ! before it: such files are
 * part of the build after all. The last pattern that matches decides. # begins a comment.
 * Owns: the compiled patterns. */
#pragma once
#include "base/err.h"
#include <stddef.h>

enum { IGNORE_BYTES = 64 << 10, IGNORE_RULES = 1000 };

struct ignore {
	struct ignore_rule *rules;
	unsigned n;
};

/* Their names, in the order in which they are looked for; NULL-terminated. */
extern const char *const ignore_names[];

/* file: its name in errors, which have the line. On -1 there is nothing to free. */
must_check int ignore_parse(struct ignore *g, const char *file, const char *text, size_t len,
			    struct err *e);
/* path: relative to the folder, without "./" before it. */
int ignore_match(const struct ignore *g, const char *path);
/* The folder matches, and so does all that is in it. */
int ignore_match_all(const struct ignore *g, const char *folder);
void ignore_fini(struct ignore *g); /* fine on a zeroed one */
