/* signature.h - what lets a stranger with a link read or write one file: made with the box's token. */
#pragma once

enum { SIGNATURE = 48 }; /* "v1_", 43 digits of base64, NUL */

struct signature_of {
	const char *path;       /* as it is in the query; "" without one */
	const char *operation;  /* "read", "write" */
	const char *user;       /* as in the query; "" without one */
	const char *token;
	const char *expiration; /* seconds, as in the query; NULL: none */
};
void signature_make(const struct signature_of *s, char out[SIGNATURE]);
