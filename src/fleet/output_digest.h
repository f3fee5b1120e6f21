/* output_digest.h - the SHA-256 of what a program wrote to one stream, as far as this server has read it.
 * Owns: a context of OpenSSL, from the first byte on. */
#pragma once
#include "base/sha256.h"

struct evp_md_ctx_st;

/* No answer contains more of a stream, and longer ones are not hashed. */
enum { OUTPUT_DIGEST_MAX = 16 << 20 };

struct output_digest { /* zero: nothing read */
	struct evp_md_ctx_st *ctx;
	uint64_t len;
	int broken; /* bytes are missing, or there were too many */
};

void output_digest_add(struct output_digest *d, uint64_t offset, const void *bytes, size_t n);
/* 1: these are all bytes of the stream, and out is their hash. Once. */
int output_digest_end(struct output_digest *d, uint64_t bytes, uint8_t out[SHA256_BYTES]);
void output_digest_fini(struct output_digest *d);
