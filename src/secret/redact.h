/* redact.h - replaces secrets of a box by [NAME] in text about it: for a model, in records, in events.
 * Owns: copies of them, and text that may be the beginning of one.
 * A value is found as it is, in base64 (also as a part of a longer text) and URL-encoded. */
#pragma once
#include "base/buf.h"
#include <jansson.h>

enum { REDACT_SHORTEST = 6 }; /* shorter values are also ordinary words, and stay */

struct redact {
	struct {
		char *name, *value;
		size_t n;
	} * v; /* longest first */
	unsigned n;
	unsigned char first[256]; /* 1: one begins with this byte */
	struct buf rest[2];
};

int redact_suspects(const char *name); /* does the name of this variable suggest a secret? */
void redact_init(struct redact *k, const char *env_json); /* {NAME: value}, or NULL */
void redact_add(struct redact *k, const char *name, const char *value, size_t n);
void redact_fini(struct redact *k);
/* A part of a stream; text that is not part of a secret, or was replaced, is appended to out. */
void redact_pass(struct redact *k, unsigned stream, const char *bytes, size_t n, struct buf *out);
void redact_flush(struct redact *k, unsigned stream,
		  struct buf *out); /* at the end of the stream */
/* A complete text. */
void redact_text(const struct redact *k, const char *text, size_t n, struct buf *out);
/* Every string of a document, which is not deep. Keys have no secrets. */
void redact_json(const struct redact *k, json_t *doc);
