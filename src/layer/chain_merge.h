/* chain_merge.h - one layer that replaces neighbours of a chain.
 *
 * A box that has the new layer in their place sees the same files. Deleted names and opaque folders are kept, because there
 * are layers below. Entries that an upper layer hides are left out. */
#pragma once
#include "base/err.h"
#include "layer/erofs_read.h"

struct chain_sum {
	uint64_t layer_bytes, stored_bytes, content_bytes, files, deleted;
};

/* lowest: no other layer of the chain lies below them: deleted names with EROFS_LOCAL are no longer needed. Overlayfs would
 * list them, if only one layer has their folder. from: images that erofs_check() has accepted, the first on top. out: an empty file. */
must_check int chain_merge_write(const struct erofs_image *from, unsigned n, int lowest, int out,
				 uint64_t bytes_most, uint64_t files_most, struct chain_sum *sum,
				 struct err *e);
