/* oidc.h - bearer tokens that an external issuer has signed: JWTs with RS256 or ES256.
 * Owns: the public keys of the issuer, read once from a file. No network is used.
 *
 * A token is accepted if a key of the file has signed it, its audience is this daemon, and it has
 * not expired. The header of the token selects one of the keys, but never the algorithm: that is a
 * property of the key, and a token that names another algorithm is rejected. */
#pragma once
#include "store/keys.h"
#include <stddef.h>

enum {
	OIDC_TOKEN = 8192,       /* bytes of a token */
	OIDC_JWKS = 1024 * 1024, /* of the file */
	OIDC_KEYS = 64,
	OIDC_LEEWAY_S = 60, /* allowed difference of the clocks */
};

struct oidc;
struct oidc_conf { /* copied */
	const char *issuer, *audience;
	const char *team_claim, *role_claim;
};
struct oidc_subject {
	char id[STORE_NAME + 1]; /* "oidc:" and the subject; a long one is cut and hashed */
	char team[STORE_NAME + 1];
	enum store_role role;
	int64_t until_s; /* seconds since 1970; the token expires then */
};

/* Keys that are not for signatures, or of an unsupported type, are ignored; a set without usable
 * keys is an error. */
must_check int oidc_new(struct oidc **out, const struct oidc_conf *conf, const char *jwks, size_t n,
			struct err *e);
void oidc_free(struct oidc *o); /* fine on NULL */

/* -1: e is why the token was rejected, as a message for the client. */
must_check int oidc_check(const struct oidc *o, const char *token, int64_t now_s,
			  struct oidc_subject *out, struct err *e);
/* Only the second half: checks the claims of a payload whose signature was verified. */
must_check int oidc_claims(const struct oidc *o, const char *payload, size_t n, int64_t now_s,
			   struct oidc_subject *out, struct err *e);
