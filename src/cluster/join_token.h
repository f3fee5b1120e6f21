/* join_token.h - tokens with which machines join a cluster.
 *
 * 	atj_<32 hex digits: secret>_<64 hex digits: fingerprint of the cluster's CA>
 *
 * The fingerprint is for the machine that joins: it sends the secret only to a gateway that has a certificate
 * of this CA. The cluster stores the hash of the secret, when the token expires and how often it can be used. */
#pragma once
#include "base/err.h"
#include "cluster/ca.h"

enum {
	JOIN_TOKEN_SECRET = 16,
	JOIN_TOKEN_TEXT = 4 + 2 * JOIN_TOKEN_SECRET + 1 + 2 * CLUSTER_FINGERPRINT, /* without NUL */
	JOIN_TOKEN_HASH = 32,
	JOIN_TOKEN_USES_MAX = 10000,
	JOIN_TOKEN_TTL_MAX_MS = 2147483647, /* 24 days */
};

struct join_token {
	unsigned char secret[JOIN_TOKEN_SECRET], fingerprint[CLUSTER_FINGERPRINT];
};

must_check int join_token_make(struct join_token *out,
			       const unsigned char fingerprint[CLUSTER_FINGERPRINT], struct err *e);
void join_token_print(const struct join_token *t, char out[JOIN_TOKEN_TEXT + 1]);
/* The text is not quoted in errors: it is a secret. */
must_check int join_token_parse(struct join_token *out, const char *text, struct err *e);
void join_token_hash(const struct join_token *t, unsigned char out[JOIN_TOKEN_HASH]);

/* What the cluster knows about a token. */
struct join_token_row {
	int found;
	int64_t expires_s; /* since 1970 */
	int64_t uses_left;
};
/* ERR_DENIED: a token of another cluster, unknown, expired or used up; the message says which. */
must_check int join_token_check(const struct join_token *t,
				const unsigned char own_fingerprint[CLUSTER_FINGERPRINT],
				const struct join_token_row *row, int64_t now_s, struct err *e);
