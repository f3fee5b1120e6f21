/* heap_compact.h - fills the gaps that loading leaves in a heap.
 * Owns: the memory in the gaps, which is never freed. Objects in the gaps of a heap are spread over
 * many pages, and every page that a child writes to is copied. After heap_compact_close() new
 * objects are adjacent. */
#pragma once
#include <stddef.h>

struct heap_compact_small { /* the interpreter's allocator of small objects */
	void *(*take)(size_t size);
	void (*give)(void *at);
};

struct heap_compact_arena { /* the newest arena; changes when a new one is allocated */
	char *at;
	size_t size;
};
struct heap_compact_rest {
	char *from, *to;
};
enum { HOLES_RESTS = 2 };

void heap_compact_close(const struct heap_compact_small *small,
			const struct heap_compact_arena *newest);
/* After heap_compact_close(): also fills memory that was freed after it had been written. out: the
 * places in arena and heap at which all later objects will be; nothing there is in use. */
void heap_compact_leave(const struct heap_compact_small *small,
			const struct heap_compact_arena *newest,
			struct heap_compact_rest out[HOLES_RESTS]);
