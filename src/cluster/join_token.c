/* join_token.c - see join_token.h. */
#include "cluster/join_token.h"
#include "base/hex.h"
#include "base/id.h"
#include "base/sha256.h"

#include <string.h>

static const char join_token_prefix[] = "atj_";
enum { PREFIX = sizeof(join_token_prefix) - 1 };

int join_token_make(struct join_token *out, const unsigned char fingerprint[CLUSTER_FINGERPRINT],
		    struct err *e)
{
	memcpy(out->fingerprint, fingerprint, CLUSTER_FINGERPRINT);
	return id_random(out->secret, sizeof(out->secret), e);
}

void join_token_print(const struct join_token *t, char out[JOIN_TOKEN_TEXT + 1])
{
	char *at = out + PREFIX;

	memcpy(out, join_token_prefix, PREFIX);
	hex_encode(at, t->secret, sizeof(t->secret));
	at += 2 * sizeof(t->secret);
	*at++ = '_';
	hex_encode(at, t->fingerprint, sizeof(t->fingerprint));
}

static int join_token_read_hex(unsigned char *out, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -1;
		out[i] = (unsigned char)(high << 4 | low);
	}
	return 0;
}

int join_token_parse(struct join_token *out, const char *text, struct err *e)
{
	const char *secret = text + PREFIX, *fingerprint = secret + 2 * JOIN_TOKEN_SECRET + 1;
	size_t n = strlen(text);

	if (n == JOIN_TOKEN_TEXT && memcmp(text, join_token_prefix, PREFIX) == 0 &&
	    fingerprint[-1] == '_' &&
	    join_token_read_hex(out->secret, sizeof(out->secret), secret) == 0 &&
	    join_token_read_hex(out->fingerprint, sizeof(out->fingerprint), fingerprint) == 0)
		return 0;
	return err_set(
		e, ERR_INVALID,
		"this is not a join token: one has %d characters and begins with %s, this text "
		"has %zu; type `atoll node token` on a gateway to get one",
		JOIN_TOKEN_TEXT, join_token_prefix, n);
}

void join_token_hash(const struct join_token *t, unsigned char out[JOIN_TOKEN_HASH])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, t->secret, sizeof(t->secret));
	sha256_end(&s, out);
}

#define ANOTHER "; type `atoll node token` on a gateway to get another one"

int join_token_check(const struct join_token *t,
		     const unsigned char own_fingerprint[CLUSTER_FINGERPRINT],
		     const struct join_token_row *row, int64_t now_s, struct err *e)
{
	if (memcmp(t->fingerprint, own_fingerprint, CLUSTER_FINGERPRINT) != 0) {
		char theirs[17], ours[17];

		hex_encode(theirs, t->fingerprint, 8);
		hex_encode(ours, own_fingerprint, 8);
		return err_set(
			e, ERR_DENIED,
			"the join token is of another cluster: its CA is %s..., the CA of this "
			"cluster is %s..." ANOTHER,
			theirs, ours);
	}
	if (!row->found)
		return err_set(e, ERR_DENIED,
			       "this cluster has not issued this join token" ANOTHER);
	if (row->expires_s <= now_s)
		return err_set(e, ERR_DENIED, "the join token expired %lld s ago" ANOTHER,
			       (long long)(now_s - row->expires_s));
	if (row->uses_left <= 0)
		return err_set(e, ERR_DENIED, "the join token was used already" ANOTHER);
	return 0;
}
