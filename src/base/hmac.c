/* hmac.c - see hmac.h. */
#include "base/hmac.h"

#include <string.h>

enum { HMAC_BLOCK = 64 };

void hmac_sha256(const void *key, size_t key_n, const void *const parts[], const size_t sizes[],
		 unsigned n, uint8_t out[SHA256_BYTES])
{
	uint8_t inner[HMAC_BLOCK] = { 0 }, outer[HMAC_BLOCK];
	struct sha256 h;

	if (key_n > HMAC_BLOCK) {
		sha256_init(&h);
		sha256_add(&h, key, key_n);
		sha256_end(&h, inner);
	} else {
		memcpy(inner, key, key_n);
	}
	for (unsigned i = 0; i < HMAC_BLOCK; i++) {
		outer[i] = inner[i] ^ 0x5c;
		inner[i] ^= 0x36;
	}
	sha256_init(&h);
	sha256_add(&h, inner, HMAC_BLOCK);
	for (unsigned i = 0; i < n; i++)
		sha256_add(&h, parts[i], sizes[i]);
	sha256_end(&h, out);
	sha256_init(&h);
	sha256_add(&h, outer, HMAC_BLOCK);
	sha256_add(&h, out, SHA256_BYTES);
	sha256_end(&h, out);
}
