/* arena.c - blocks of one size come from the server's free list; larger blocks are allocated one
 * by one. */
#include "http/arena.h"

#include <stdlib.h>

enum {
	BLOCK = 4096 - 64, /* with its head and malloc's, below a page */
	STOCK_MAX = 256,   /* blocks kept after a burst: a megabyte */
};

static struct arena_block *block_new(struct arena_stock *s, size_t n)
{
	size_t room = n > BLOCK ? n : BLOCK;
	struct arena_block *b = s->free;

	if (room == BLOCK && b) {
		s->free = b->next;
		s->count--;
	} else {
		b = malloc(sizeof(*b) + room);
		if (!b)
			abort();
		b->room = room;
	}
	b->used = 0;
	return b;
}

void *arena_alloc(struct arena *a, size_t n)
{
	struct arena_block *b = a->blocks;
	void *p;

	n = (n + 15) & ~(size_t)15;
	if (!b || b->room - b->used < n) {
		b = block_new(a->stock, n);
		b->next = a->blocks;
		a->blocks = b;
	}
	p = b->bytes + b->used;
	b->used += n;
	return p;
}

void arena_reset(struct arena *a)
{
	struct arena_stock *s = a->stock;

	for (struct arena_block *b = a->blocks, *next; b; b = next) {
		next = b->next;
		if (b->room == BLOCK && s->count < STOCK_MAX) {
			b->next = s->free;
			s->free = b;
			s->count++;
		} else {
			free(b);
		}
	}
	a->blocks = NULL;
}

void arena_stock_fini(struct arena_stock *s)
{
	for (struct arena_block *b = s->free, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	s->free = NULL;
	s->count = 0;
}
