/* steps.h - every step by name; mend.c makes a table of it, the files steps_*.c have the functions. */
#pragma once
#include "agent/mend.h"

#define MENDS                                                                                      \
	/* steps_package.c */                                                                      \
	MEND(install) MEND(module_path) MEND(header) MEND(link) MEND(package_drop) MEND(unpin)     \
	/* steps_text.c */                                                                         \
	MEND(fences) MEND(quotes) MEND(tabs) MEND(dedent) MEND(close) MEND(semicolon) MEND(colon)  \
	MEND(equals) MEND(end)                                                                     \
	/* steps_old.c */                                                                          \
	MEND(python2)                                                                              \

#define MEND(name) int mend_##name(struct sick *s);
MENDS
#undef MEND

/* ---- shared by them ---- */

/* Every word like this becomes the other one; how many did? */
unsigned text_rename(struct buf *out, const char *text, const char *word, const char *with);
/* The artifact's files, in one order: path by path. NULL behind the last. */
const char *sick_path(const struct sick *s, size_t i);
/* artifact.env gets this. */
void child_env(json_t *child, const char *name, const char *value);
