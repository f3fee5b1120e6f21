/* hmac.h - HMAC-SHA256 (RFC 2104) over a text in several parts. */
#pragma once
#include "base/sha256.h"
#include <stddef.h>
#include <stdint.h>

void hmac_sha256(const void *key, size_t key_n, const void *const parts[], const size_t sizes[],
		 unsigned n, uint8_t out[SHA256_BYTES]);
