/* arena.h - memory that ends with a request.
 * Owns: the blocks of one request. They come from the server's stock and go back to it, so that an
 *       idle connection holds none and a busy one takes the block that is still in the cache. */
#pragma once
#include <stddef.h>

struct arena_block {
	struct arena_block *next;
	size_t room, used;
	_Alignas(16) char bytes[];
};

struct arena_stock {
	struct arena_block *free;
	unsigned count;
};

struct arena {
	struct arena_stock *stock;
	struct arena_block *blocks; /* the newest first */
};

void *arena_alloc(struct arena *a, size_t n); /* never NULL; not zeroed */
void arena_reset(struct arena *a);
void arena_stock_fini(struct arena_stock *s);
