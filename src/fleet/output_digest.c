/* output_digest.c - see output_digest.h. OpenSSL uses the instructions of the processor for SHA-256, and is many times
 * faster than base/sha256.c with them. */
#include "fleet/output_digest.h"

#include <openssl/evp.h>
#include <stdlib.h>

static void digest_start(struct output_digest *d)
{
	static EVP_MD
		*sha256; /* fetched once: each implicit fetch takes longer than a short hash */

	if (!sha256)
		sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	d->ctx = EVP_MD_CTX_new();
	if (!sha256 || !d->ctx || EVP_DigestInit_ex2(d->ctx, sha256, NULL) != 1)
		abort();
}

void output_digest_add(struct output_digest *d, uint64_t offset, const void *bytes, size_t n)
{
	if (d->broken)
		return;
	if (offset != d->len || n > OUTPUT_DIGEST_MAX - d->len) {
		output_digest_fini(d);
		d->broken = 1;
		return;
	}
	if (!d->ctx)
		digest_start(d);
	EVP_DigestUpdate(d->ctx, bytes, n);
	d->len += n;
}

int output_digest_end(struct output_digest *d, uint64_t bytes, uint8_t out[SHA256_BYTES])
{
	int ok = !d->broken && d->len == bytes;

	if (ok && !d->ctx)
		digest_start(d); /* the hash of no bytes */
	ok = ok && EVP_DigestFinal_ex(d->ctx, out, NULL) == 1;
	output_digest_fini(d);
	d->broken = 1;
	return ok;
}

void output_digest_fini(struct output_digest *d)
{
	EVP_MD_CTX_free(d->ctx);
	d->ctx = NULL;
}
