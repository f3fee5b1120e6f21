/* image_unpack.h - from a layer of an image (a tar archive: plain, gzip or zstd) to files.
 * Owns: nothing. Runs in the process of image_process.h: libarchive reads bytes that an attacker
 * may have chosen.
 *
 * Kept: names, owners that a box has, modes, times, links, hard links, named pipes, user.* attributes.
 * Left out and counted: device nodes. Left out: attributes of other kinds (security.*, trusted.*,
 * user.overlay.*), access control lists. Everything else that is unusual is an error that names the
 * entry: a name that leaves the root, an owner that no box has, a hard link to something that is not
 * there, too many entries or bytes, an archive without an end or with bytes after it. */
#pragma once
#include "base/err.h"
#include <stdint.h>

enum { IMAGE_UNPACK_ENTRIES = 1000000 }; /* in one archive, whatever files_most is */

struct image_limits {
	uint64_t bytes_most, files_most; /* content of files, with holes; entries of any kind */
};

struct image_sum {
	uint64_t bytes, files, skipped; /* skipped: device nodes */
	char diff[64 + 1]; /* SHA-256 of the archive without its compression: a diff id of OCI */
};

/* root: an empty folder. libarchive_load() was called. */
must_check int image_unpack(int archive, int root, const struct image_limits *limits,
			    struct image_sum *out, struct err *e);
