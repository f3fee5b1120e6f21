/* heap_image.h - what a zygote has loaded, laid where a fork costs little.
 * Owns: the room for an interpreter's heap, and the sealed file that its pages come from.
 *
 * A fork copies an entry for each page of a process' own memory, and its end takes each apart again;
 * a write to such a page is a copy and a flush of the other processors' tables. A private mapping of a
 * file that nobody wrote to is free at a fork: who touches a page finds it in the file. So what was
 * loaded is written to a file in memory, sealed, and mapped again at its own place, privately. */
#pragma once
#include "base/err.h"
#include <stddef.h>

/* Memory that heap_image_take() knows; NULL when there is no room left. Page-aligned, zeroed. */
void *heap_image_room(size_t size);
/* Nothing there needs to be kept: it stays out of the file, and a child finds nothing there. */
void heap_image_spare(void *from, void *to);
/* Once, with one thread. A failure leaves everything as it was. */
must_check int heap_image_take(struct err *e);
enum { BAKE_LIVES = 4 };
/* Lets some forks live as children will, and learns which pages half of them write to. Behind heap_image_take(). */
must_check int heap_image_learn(void (*live)(unsigned which), struct err *e);
/* In a child: its own copies of these pages, all at once, which is cheaper than one by one. */
void heap_image_warm(void);
