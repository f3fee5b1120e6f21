/* redact.h - secrets of a box, taken out of what a model is given.
 * Owns: copies of them, and the beginning of what may become one when the next piece comes. */
#pragma once
#include "base/buf.h"

enum { REDACT_SECRETS = 64, REDACT_SHORTEST = 6 };

struct redact {
	struct {
		char *name, *value;
		size_t n;
	} v[REDACT_SECRETS]; /* longest first */
	unsigned n;
	struct buf rest[2];
};

int redact_suspects(const char *name); /* a variable's name that looks like a secret's */
void redact_init(struct redact *k, const char *env_json); /* {NAME: value}, or NULL */
void redact_fini(struct redact *k);
/* A piece of a stream; what is surely no secret, or was one, is put behind out. */
void redact_pass(struct redact *k, unsigned stream, const char *bytes, size_t n, struct buf *out);
void redact_flush(struct redact *k, unsigned stream, struct buf *out); /* the stream is over */
/* A text that is whole. */
void redact_text(const struct redact *k, const char *text, size_t n, struct buf *out);
