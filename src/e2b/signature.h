/* signature.h - the signature in a link that lets any client read or write one file: made with
 * the box's token. */
#pragma once
#include "base/sha256.h"

enum { SIGNATURE = 48, SIGNATURE_TEXT = 46 }; /* "v1_", 43 digits of base64, NUL */

struct signature_of {
	const char *path;      /* as it is in the query; "" without one */
	const char *operation; /* "read", "write" */
	const char *user;      /* as in the query; "" without one */
	const char *token;
	const char *expiration; /* seconds, as in the query; NULL: none */
};
void signature_make(const struct signature_of *s, char out[SIGNATURE]);

/* The same for many tokens: their common part is hashed once. */
struct signature_tries {
	struct sha256 common;
	const char *expiration;
	uint8_t given[SHA256_BYTES];
};
/* 0, or -1: `given` is not a signature. s->token is not used. */
int signature_begin(struct signature_tries *t, const struct signature_of *s, const char *given);
int signature_is_of(const struct signature_tries *t, const char *token); /* in constant time */
