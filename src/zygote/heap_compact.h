/* heap_compact.h - the gaps that loading leaves in a heap, closed.
 * Owns: what it takes, which is never given back.
 *
 * What is made in the gaps of a heap lies on as many pages as there are gaps, and every page that a
 * child writes to is copied. Behind holes_close() all that is made lies side by side. */
#pragma once
#include <stddef.h>

struct holes_small { /* the interpreter's allocator of small objects */
	void *(*take)(size_t size);
	void (*give)(void *at);
};

struct holes_arena { /* the newest one of that allocator; it changes when there is another */
	char *at;
	size_t size;
};
struct holes_rest {
	char *from, *to;
};
enum { HOLES_RESTS = 2 };

void holes_close(const struct holes_small *small, const struct holes_arena *newest);
/* Behind it: takes also what was free once and written to. out: where all that is made from now on will
 * be, in arena and heap. Nothing there needs to be kept. */
void holes_leave(const struct holes_small *small, const struct holes_arena *newest,
		 struct holes_rest out[HOLES_RESTS]);
