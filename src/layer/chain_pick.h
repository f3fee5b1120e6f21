/* chain_pick.h - a layer with chosen entries of a chain, for a merge of two boxes.
 *
 * The index (index.h) lists the entries. A whiteout removes its name. Folders have mode, owner and time of the index, and are
 * opaque if they are so in the index; everything else comes from the chain, which must have it with the same type and size. */
#pragma once
#include "layer/chain_merge.h"

/* from, out: as chain_merge_write(). index: a file that this process can only read; it is checked. */
must_check int chain_pick_write(const struct erofs_image *from, unsigned n, int index, int out,
				uint64_t bytes_most, uint64_t files_most, struct chain_sum *sum,
				struct err *e);
