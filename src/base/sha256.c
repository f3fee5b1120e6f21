/* sha256.c - see sha256.h. No libc: init links this file too. */
#include "base/sha256.h"

static const uint32_t k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t sha256_turn(uint32_t x, int by)
{
	return x >> by | x << (32 - by);
}

static void sha256_mix(uint32_t state[8], const uint8_t *block)
{
	uint32_t w[64], v[8];
	int i;

	for (i = 0; i < 16; i++, block += 4)
		w[i] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 |
		       (uint32_t)block[2] << 8 | block[3];
	for (; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + (sha256_turn(a, 7) ^ sha256_turn(a, 18) ^ a >> 3) + w[i - 7] +
		       (sha256_turn(b, 17) ^ sha256_turn(b, 19) ^ b >> 10);
	}
	for (i = 0; i < 8; i++)
		v[i] = state[i];
	for (i = 0; i < 64; i++) {
		uint32_t t1 =
			v[7] +
			(sha256_turn(v[4], 6) ^ sha256_turn(v[4], 11) ^ sha256_turn(v[4], 25)) +
			((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
		uint32_t t2 =
			(sha256_turn(v[0], 2) ^ sha256_turn(v[0], 13) ^ sha256_turn(v[0], 22)) +
			((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));

		v[7] = v[6], v[6] = v[5], v[5] = v[4], v[4] = v[3] + t1;
		v[3] = v[2], v[2] = v[1], v[1] = v[0], v[0] = t1 + t2;
	}
	for (i = 0; i < 8; i++)
		state[i] += v[i];
}

void sha256_init(struct sha256 *s)
{
	*s = (struct sha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
					 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

void sha256_add(struct sha256 *s, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	while (n) {
		size_t have = s->len % 64;

		if (!have && n >= 64) { /* directly from the memory of the caller */
			sha256_mix(s->state, p);
			s->len += 64;
			p += 64;
			n -= 64;
			continue;
		}
		s->block[have] = *p++;
		s->len++;
		n--;
		if (have == 63)
			sha256_mix(s->state, s->block);
	}
}

void sha256_end(struct sha256 *s, uint8_t out[SHA256_BYTES])
{
	static const uint8_t one = 0x80, zero = 0;
	uint64_t bits = s->len * 8;
	uint8_t length[8];
	int i;

	sha256_add(s, &one, 1);
	while (s->len % 64 != 56)
		sha256_add(s, &zero, 1);
	for (i = 0; i < 8; i++)
		length[i] = (uint8_t)(bits >> (56 - 8 * i));
	sha256_add(s, length, 8);
	for (i = 0; i < SHA256_BYTES; i++)
		out[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}
