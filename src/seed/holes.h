/* holes.h - the gaps that loading leaves in a heap, closed.
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

/* newest: where that allocator's newest arena is; it changes when there is another. */
void holes_close(const struct holes_small *small, void *const *newest);
/* The gaps that have opened since among what was there before. */
void holes_close_again(const struct holes_small *small);
