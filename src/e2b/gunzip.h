/* gunzip.h - decompresses a body piece by piece.
 * Owns: zlib's state. The output never exceeds the given room, so a decompression bomb makes
 * work for the box of its sender, and takes no memory here. */
#pragma once
#include "base/err.h"
#include <stddef.h>

struct gunzip;
struct gunzip *gunzip_new(void);
void gunzip_free(struct gunzip *g); /* NULL is fine */
/* Reads some of *in and moves it; returns how many bytes were written to out. 0: it needs more
 * input; -1: e. */
long gunzip_some(struct gunzip *g, const char **in, size_t *n, char *out, size_t room,
		 struct err *e);
int gunzip_ended(const struct gunzip *g); /* only complete members were read */
