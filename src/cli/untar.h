/* untar.h - unpacks an archive from a box. The archive is untrusted: only files, folders and
 * links are created, only below the given folder, never through a link, with permission bits
 * only; owners are not set. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <stdint.h>

struct untar {
	int root; /* the folder; the caller's */
	unsigned char block[512];
	unsigned have;               /* bytes of the block */
	uint64_t left;               /* of the entry's content */
	uint64_t pad;                /* to the next block */
	struct buf name, link, text; /* of the next entry; the header that describes it */
	int kind;  /* of the content: 0 none, 'x' a header, 'f' a file, 's' skipped */
	char head; /* 'x', 'L', 'K' */
	int fd;
	unsigned zeros; /* blocks of them */
	uint64_t files, skipped;
};

void untar_init(struct untar *u, int root);
must_check int untar_take(struct untar *u, const char *bytes, size_t n, struct err *e);
must_check int untar_end(struct untar *u, struct err *e); /* was it all? */
void untar_fini(struct untar *u);
