/* gunzip.h - a body that was sent compressed, a piece at a time.
 * Owns: zlib's state. What comes out never has more than the room it is given, so a small bomb makes
 *       much work for its sender's box, and takes no memory here. */
#pragma once
#include "base/err.h"
#include <stddef.h>

struct gunzip;
struct gunzip *gunzip_new(void);
void gunzip_free(struct gunzip *g); /* NULL is fine */
/* Takes some of *in, moving it; returns how many bytes were put into out. 0: it wants more; -1: e. */
long gunzip_some(struct gunzip *g, const char **in, size_t *n, char *out, size_t room,
		 struct err *e);
int gunzip_ended(const struct gunzip *g); /* whole members only were seen */
