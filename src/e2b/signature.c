/* signature.c - see signature.h. */
#include "e2b/signature.h"
#include "base/base64.h"
#include "base/sha256.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

static void signature_add(struct sha256 *h, const char *text)
{
	sha256_add(h, text, strlen(text));
}

static void signature_hash_common(struct sha256 *h, const struct signature_of *s)
{
	sha256_init(h);
	signature_add(h, s->path);
	signature_add(h, ":");
	signature_add(h, s->operation);
	signature_add(h, ":");
	signature_add(h, s->user);
	signature_add(h, ":");
}

static void signature_hash_token(struct sha256 *h, const char *token, const char *expiration,
				 uint8_t out[SHA256_BYTES])
{
	signature_add(h, token);
	if (expiration) {
		signature_add(h, ":");
		signature_add(h, expiration);
	}
	sha256_end(h, out);
}

int signature_begin(struct signature_tries *t, const struct signature_of *s, const char *given)
{
	auto_buf struct buf raw = { 0 };
	char padded[SIGNATURE];

	if (strlen(given) != SIGNATURE_TEXT || strncmp(given, "v1_", 3) != 0)
		return -1;
	snprintf(padded, sizeof(padded), "%s=", given + 3);
	if (base64_decode(&raw, padded, strlen(padded)) < 0 || raw.len != SHA256_BYTES)
		return -1;
	memcpy(t->given, raw.p, SHA256_BYTES);
	t->expiration = s->expiration;
	signature_hash_common(&t->common, s);
	return 0;
}

int signature_is_of(const struct signature_tries *t, const char *token)
{
	struct sha256 h = t->common;
	uint8_t digest[SHA256_BYTES];

	signature_hash_token(&h, token, t->expiration, digest);
	return CRYPTO_memcmp(digest, t->given, SHA256_BYTES) == 0;
}

void signature_make(const struct signature_of *s, char out[SIGNATURE])
{
	auto_buf struct buf coded = { 0 };
	uint8_t digest[SHA256_BYTES];
	struct sha256 h;

	signature_hash_common(&h, s);
	signature_hash_token(&h, s->token, s->expiration, digest);
	base64_encode(&coded, digest, sizeof(digest));
	while (coded.len && coded.p[coded.len - 1] == '=')
		buf_cut(&coded, coded.len - 1);
	snprintf(out, SIGNATURE, "v1_%s", buf_str(&coded));
}
