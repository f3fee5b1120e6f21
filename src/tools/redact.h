/* redact.h - removes secrets of a box from the text for a model.
 * Owns: copies of them, and text that may be the beginning of one. */
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

int redact_suspects(const char *name); /* does the name of this variable suggest a secret? */
void redact_init(struct redact *k, const char *env_json); /* {NAME: value}, or NULL */
void redact_fini(struct redact *k);
/* A part of a stream; text that is not part of a secret, or was replaced, is appended to out. */
void redact_pass(struct redact *k, unsigned stream, const char *bytes, size_t n, struct buf *out);
void redact_flush(struct redact *k, unsigned stream,
		  struct buf *out); /* at the end of the stream */
/* A complete text. */
void redact_text(const struct redact *k, const char *text, size_t n, struct buf *out);
