/* upper_digest.h - what is in a box beyond what it was made of, as one digest. No box is touched here.
 * Owns: a digest of each entry that a file worker tells (CHANGES), until the end.
 *
 * Two boxes with the same digest show a compiler the same: path, kind, rights, owner, time and content of
 * everything, in whatever order it is told. What whoever asks has put there himself is left out: he
 * knows that already. So is what a compiler only writes to, or that cannot change what it makes; but
 * it is said that there was some. Where something could not be looked at there is no digest. */
#pragma once
#include "base/sha256.h"
#include "wire/wire.h"
#include <stddef.h>

enum { UPPER_DIGEST_ENTRIES = 4000 };
#define UPPER_DIGEST_HASHED (UINT64_C(16) << 20) /* bytes of files, all together */

struct upper_digest {
	/* Both end with a NULL and are borrowed. That there are folders above them does not count either. */
	const char *const *own;   /* files */
	const char *const *loose; /* files, or folders with all that is in them */
	int has_loose;
	uint8_t (*entries)[SHA256_BYTES];
	unsigned n, room;
	int broken;
};

void upper_digest_entry(struct upper_digest *u, const struct wire_entry *e, const char *path,
			size_t len);
void upper_digest_missing(struct upper_digest *u); /* there is more, and nobody knows what */
/* 1: there is something else, and this is it; 0: nothing; -1: that cannot be said. */
int upper_digest_end(struct upper_digest *u, uint8_t out[SHA256_BYTES]);
void upper_digest_fini(struct upper_digest *u); /* fine on a zeroed one */
