/* heap_compact.c - see heap_compact.h.
 *
 * An allocator returns free memory before it asks for more. So allocating until an address after a
 * mark is returned fills every gap before it. The mark of the small objects is a new arena, that of
 * the heap of the C library the start of the free space at its end. No more of that heap is used
 * than existed: close_heap() frees every large block from after the mark. */
#include "zygote/heap_compact.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { SMALL_MOST = 512, SMALL_STEP = 16 };
enum { HEAP_LEAST = 16, HEAP_MOST = 96 * 1024, HEAP_KEPT = 1040, HEAP_STEP = 16 };
enum {
	TRIES = 1 << 18
}; /* limit per size: if it is reached, an assumption is wrong, but nothing breaks */

enum { POOL = 16384, CHUNK = 64 }; /* maximum size of an allocator header */
enum { HEAP_REST = 512 * 1024 };   /* for most programs enough */

static uintptr_t small_mark, small_top, heap_mark;

static void *compact_must(void *at)
{
	if (!at)
		_exit(72);
	return at;
}

static void close_small(const struct heap_compact_small *small)
{
	for (size_t size = SMALL_STEP; size <= SMALL_MOST; size += SMALL_STEP)
		for (unsigned i = 0; i < TRIES; i++) {
			void *at = compact_must(small->take(size));

			if ((uintptr_t)at >= small_mark) {
				small_top = (uintptr_t)at > small_top ? (uintptr_t)at : small_top;
				small->give(at);
				break;
			}
		}
}

/* From the largest size down: the rest of a gap is a smaller gap. */
static void close_heap(void)
{
	for (size_t size = HEAP_MOST; size >= HEAP_LEAST; size -= HEAP_STEP)
		for (unsigned i = 0; i < TRIES; i++) {
			void *at = compact_must(malloc(size));

			if ((uintptr_t)at < heap_mark)
				continue;
			/* A small block would be cached instead of returned to the end. */
			if (size > HEAP_KEPT)
				free(at);
			break;
		}
}

static void new_arena(const struct heap_compact_small *small,
		      const struct heap_compact_arena *newest)
{
	const char *last = newest->at;

	for (unsigned i = 0; i < TRIES && newest->at == last; i++)
		compact_must(small->take(SMALL_MOST));
	small_mark = (uintptr_t)newest->at;
}

static uintptr_t heap_rest(void)
{
	return (uintptr_t)sbrk(0) - mallinfo2().keepcost;
}

void heap_compact_close(const struct heap_compact_small *small,
			const struct heap_compact_arena *newest)
{
	new_arena(small, newest);
	close_small(small);
	heap_mark = heap_rest();
	close_heap();
}

/* Freed pools are used first, then unused ones in ascending order. */
static struct heap_compact_rest leave_small(const struct heap_compact_small *small,
					    const struct heap_compact_arena *newest)
{
	uintptr_t at = 0, end;

	for (unsigned i = 0; i < TRIES && at <= small_top; i++)
		at = (uintptr_t)compact_must(small->take(SMALL_MOST));
	end = (uintptr_t)newest->at + newest->size;
	at = (at / POOL + 1) * POOL;
	return (struct heap_compact_rest){ (char *)(at < end ? at : end), (char *)end };
}

static struct heap_compact_rest leave_heap(void)
{
	void *volatile room =
		compact_must(malloc(HEAP_REST)); /* prevents that the compiler removes both */

	free(room);
	return (struct heap_compact_rest){ (char *)heap_rest() + CHUNK, sbrk(0) };
}

void heap_compact_leave(const struct heap_compact_small *small,
			const struct heap_compact_arena *newest,
			struct heap_compact_rest out[HOLES_RESTS])
{
	out[0] = leave_small(small, newest);
	out[1] = leave_heap();
}
