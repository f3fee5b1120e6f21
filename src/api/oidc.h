/* oidc.h - bearer tokens that somebody else has signed: JWTs, RS256 and ES256.
 * Owns: the signer's public keys, read once from a file. Nothing is fetched.
 *
 * A token is believed when a key of the file signed it, it is meant for us, and it is not over. What
 * the token says about itself chooses among our keys and never how they are used: the algorithm is
 * the key's, and one that says otherwise is refused. */
#pragma once
#include "store/keys.h"
#include <stddef.h>

enum {
	OIDC_TOKEN = 8192,       /* bytes of a token */
	OIDC_JWKS = 1024 * 1024, /* of the file */
	OIDC_KEYS = 64,
	OIDC_LEEWAY_S = 60, /* that the clocks may differ */
};

struct oidc;
struct oidc_conf { /* copied */
	const char *issuer, *audience;
	const char *team_claim, *role_claim;
};
struct oidc_who {
	char id[STORE_NAME + 1]; /* "oidc:" and the subject; a long one is cut and hashed */
	char team[STORE_NAME + 1];
	enum store_role role;
	int64_t until_s; /* since 1970; then it is over */
};

/* Keys that are not for signatures, or of a kind that we do not use, are left out; none left is an
 * error. */
must_check int oidc_new(struct oidc **out, const struct oidc_conf *conf, const char *jwks, size_t n,
			struct err *e);
void oidc_free(struct oidc *o); /* fine on NULL */

/* -1: why it is not believed, for whoever sent it. */
must_check int oidc_check(const struct oidc *o, const char *token, int64_t now_s,
			  struct oidc_who *out, struct err *e);
/* The second half alone: what a payload says, once its signature is known to be good. */
must_check int oidc_claims(const struct oidc *o, const char *payload, size_t n, int64_t now_s,
			   struct oidc_who *out, struct err *e);
