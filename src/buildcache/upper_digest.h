/* upper_digest.h - a digest of the files in the upper layer of a box. No box is accessed here.
 * Owns: a digest of each entry that a file worker reports (CHANGES), until the end.
 *
 * Two boxes with the same digest are equal for a compiler: path, type, mode, owner, time and
 * content of every file, in any order. Files of the request are left out, because the key has them.
 * So are files that a compiler only writes, or that cannot change its output; but their presence is
 * reported. If a file cannot be examined there is no digest. */
#pragma once
#include "base/sha256.h"
#include "wire/wire.h"
#include <stddef.h>

enum { UPPER_DIGEST_ENTRIES = 4000 };
#define UPPER_DIGEST_HASHED (UINT64_C(16) << 20) /* bytes of files, all together */

struct upper_digest {
	/* Both end with a NULL and are borrowed. Their parent folders do not count either. */
	const char *const *own;   /* files */
	const char *const *loose; /* files, or folders with all that is in them */
	int has_loose;
	uint8_t (*entries)[SHA256_BYTES];
	unsigned n, room;
	int broken;
};

void upper_digest_entry(struct upper_digest *u, const struct wire_entry *e, const char *path,
			size_t len);
void upper_digest_missing(struct upper_digest *u); /* there are more files that are unknown */
/* 1: the digest of other files; 0: no other files; -1: unknown. */
int upper_digest_end(struct upper_digest *u, uint8_t out[SHA256_BYTES]);
void upper_digest_fini(struct upper_digest *u); /* fine on a zeroed one */
