/* layer_merge.h - one tree of several layers, as an overlay of them would show it.
 *
 * Files, links and fifos of the tree are hard links to those of the layers, so it takes little space
 * and no content is read; only where the file system allows no further link, a file is copied.
 * Folders are new. Deletions are applied, and are part of the tree only if it lies over base. */
#pragma once
#include "base/err.h"
#include "wire/wire.h"

struct layer_merge {
	int layer[WIRE_ROOT_LAYERS]; /* the first on top */
	unsigned n;
	int base; /* the skeleton and /usr of base lie below */
};

/* to: an empty folder on the same file system. */
must_check int layer_merge_make(const struct layer_merge *m, int to, struct err *e);
/* Compares the tree with the layers: each entry is the same inode, or has the same facts and
 * content. The layers themselves are checked elsewhere. */
must_check int layer_merge_check(const struct layer_merge *m, int tree, struct err *e);
