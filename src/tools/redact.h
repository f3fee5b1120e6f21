/* redact.h - secrets of a box, taken out of what a model is given.
 * Owns: copies of them, and the beginning of what may become one when the next piece comes. */
#pragma once
#include "base/buf.h"

enum { CLOAK_SECRETS = 64, CLOAK_SHORTEST = 6 };

struct cloak {
	struct {
		char *name, *value;
		size_t n;
	} v[CLOAK_SECRETS]; /* longest first */
	unsigned n;
	struct buf rest[2];
};

int cloak_suspects(const char *name); /* a variable's name that looks like a secret's */
void cloak_init(struct cloak *k, const char *env_json); /* {NAME: value}, or NULL */
void cloak_fini(struct cloak *k);
/* A piece of a stream; what is surely no secret, or was one, is put behind out. */
void cloak_pass(struct cloak *k, unsigned stream, const char *bytes, size_t n, struct buf *out);
void cloak_flush(struct cloak *k, unsigned stream, struct buf *out); /* the stream is over */
/* A text that is whole. */
void cloak_text(const struct cloak *k, const char *text, size_t n, struct buf *out);
