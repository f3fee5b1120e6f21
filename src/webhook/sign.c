/* sign.c - see sign.h. */
#include "webhook/sign.h"
#include "base/base64.h"
#include "base/hex.h"
#include "base/hmac.h"

#include <stdio.h>
#include <string.h>

void webhook_sign(char out[WEBHOOK_SIGNATURE], const char *secret, int64_t at_s, const char *body)
{
	char at[32], hex[2 * SHA256_BYTES + 1];
	uint8_t mac[SHA256_BYTES];

	snprintf(at, sizeof(at), "%lld", (long long)at_s);
	hmac_sha256(secret, strlen(secret), (const void *[]){ at, ".", body },
		    (const size_t[]){ strlen(at), 1, strlen(body) }, 3, mac);
	hex_encode(hex, mac, sizeof(mac));
	snprintf(out, WEBHOOK_SIGNATURE, "t=%s,v1=%s", at, hex);
}

void webhook_sign_e2b(char out[WEBHOOK_SIGNATURE], const char *secret, const char *body)
{
	auto_buf struct buf text = { 0 };
	uint8_t digest[SHA256_BYTES];
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, secret, strlen(secret));
	sha256_add(&h, body, strlen(body));
	sha256_end(&h, digest);
	base64_encode(&text, digest, sizeof(digest));
	snprintf(out, WEBHOOK_SIGNATURE, "%.*s", (int)strcspn(buf_str(&text), "="), buf_str(&text));
	for (char *c = out; *c; c++)
		*c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
}
