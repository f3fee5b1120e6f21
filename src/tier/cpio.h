/* cpio.h - writes an archive in the format "newc", which the kernel unpacks as its first root.
 * Owns: the bytes that are built. Owners are 0:0 unless said otherwise; times are 0, so that equal
 * contents give equal archives. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <stdint.h>

struct cpio {
	struct buf out;
	uint32_t files; /* so far: inode numbers */
};

/* mode with the type of the file (S_IFREG, S_IFDIR, S_IFLNK: bytes are the target). The folders on
 * the way must have been added before. A name is relative and at most 255 bytes long. */
must_check int cpio_add(struct cpio *c, const char *name, uint32_t mode, uint32_t uid,
			const void *bytes, size_t n, struct err *e);
/* Adds folder `dir`, which was opened by the caller, and everything below it as `name`. Only files,
 * folders and links are accepted; the owner is kept, as seen by this process. */
must_check int cpio_add_tree(struct cpio *c, const char *name, int dir, struct err *e);
void cpio_end(struct cpio *c); /* the last entry */
void cpio_fini(struct cpio *c);
