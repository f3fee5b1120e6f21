/* glob.h - patterns for paths: * and ? within a name, ** across folders, [a-z], [!a-z], \ before any of them.
 * Owns: nothing; a compiled pattern is plain data.
 * A match reads each byte of the path once, whatever the pattern: both may be hostile. */
#pragma once
#include "base/err.h"

enum { GLOB_BYTES = 120 }; /* of a pattern */

struct glob {
	unsigned __int128 takes[256];           /* tokens that match this byte */
	unsigned __int128 star, globstar, dirs; /* *, **, and a ** with the slash after it */
	unsigned n;                             /* tokens */
};

/* ERR_INVALID: it is empty, too long or ends within [ or after \. */
must_check int glob_compile(struct glob *g, const char *pattern, struct err *e);
int glob_match(const struct glob *g, const char *path);
/* The same; or it matches a folder that the path is in. */
int glob_match_below(const struct glob *g, const char *path);
