/* sha256.h - FIPS 180-4, one function at a time. Freestanding: init links it too. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32 };

struct sha256 {
	uint32_t state[8];
	uint64_t len;      /* bytes taken so far */
	uint8_t block[64]; /* the unfinished one */
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *bytes, size_t n);
void sha256_end(struct sha256 *s, uint8_t out[SHA256_BYTES]);
