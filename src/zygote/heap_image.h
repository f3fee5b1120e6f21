/* heap_image.h - moves the loaded heap of a zygote into a sealed file, so that a fork is cheap.
 * Owns: the memory of the interpreter's heap, and the sealed file that its pages come from. A fork
 * copies a table entry for each page of private memory, and the exit removes each; a write to such
 * a page is a copy and a TLB flush. A private mapping of an unwritten file is free at a fork: a
 * touched page is found in the file. So the heap is written to a memfd, sealed, and mapped
 * privately at the same addresses. */
#pragma once
#include "base/err.h"
#include <stddef.h>

/* Memory that is part of the image; NULL when no space is left. Page-aligned, zeroed. */
void *heap_image_room(size_t size);
/* This range is not stored in the file, and reads as zero in a child. */
void heap_image_spare(void *from, void *to);
/* Call it once, with one thread. A failure leaves the memory unchanged. */
must_check int heap_image_take(struct err *e);
enum { BAKE_LIVES = 4 };
/* Runs some trial forks that behave like children, and determines which pages at least half of
 * them write to. Call it after heap_image_take(). */
must_check int heap_image_learn(void (*live)(unsigned which), struct err *e);
/* In a child: its own copies of these pages, all at once, which is cheaper than one by one. */
void heap_image_warm(void);
