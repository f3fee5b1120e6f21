/* arena.h - memory that is freed when a request ends.
 * Owns: the blocks of one request. The server keeps a list of free blocks and gets them back, so
 * an
 *       idle connection holds no block and a busy one gets one that is still in the CPU cache. */
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
