/* holes.c - see holes.h.
 *
 * An allocator gives what is free before it asks for more. So whoever takes until an address behind a
 * mark comes has taken every gap before it. The mark of the small objects is a new arena, that of the C
 * library's heap the beginning of the free space at its end. */
#include "seed/holes.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { SMALL_MOST = 512, SMALL_STEP = 16 };
enum { HEAP_LEAST = 16, HEAP_MOST = 96 * 1024, HEAP_KEPT = 1040, HEAP_STEP = 16 };
enum { TRIES = 1 << 18 }; /* of one size: then something is not as we think, and nothing is lost */

static uintptr_t small_mark, heap_mark;

static void *must(void *at)
{
	if (!at)
		_exit(72);
	return at;
}

static void close_small(const struct holes_small *small)
{
	for (size_t size = SMALL_STEP; size <= SMALL_MOST; size += SMALL_STEP)
		for (unsigned i = 0; i < TRIES; i++) {
			void *at = must(small->take(size));

			if ((uintptr_t)at >= small_mark) {
				small->give(at);
				break;
			}
		}
}

/* From the largest down: what is left of a gap is a smaller one. */
static void close_heap(void)
{
	for (size_t size = HEAP_MOST; size >= HEAP_LEAST; size -= HEAP_STEP)
		for (unsigned i = 0; i < TRIES; i++) {
			void *at = must(malloc(size));

			if ((uintptr_t)at < heap_mark)
				continue;
			/* A small one would not go back to the end but wait for its like. */
			if (size > HEAP_KEPT)
				free(at);
			break;
		}
}

static void new_arena(const struct holes_small *small, void *const *newest)
{
	void *last = *newest;

	for (unsigned i = 0; i < TRIES && *newest == last; i++)
		must(small->take(SMALL_MOST));
	small_mark = (uintptr_t)*newest;
}

void holes_close(const struct holes_small *small, void *const *newest)
{
	new_arena(small, newest);
	close_small(small);
	heap_mark = (uintptr_t)sbrk(0) - mallinfo2().keepcost;
	close_heap();
}

void holes_close_again(const struct holes_small *small)
{
	close_small(small);
	close_heap();
}
