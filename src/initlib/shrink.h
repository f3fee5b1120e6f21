/* shrink.h - reduces init's address space to its image.
 * Owns: what the kernel mapped beside the image: the initial stack, the vdso.
 *
 * Every box has an init, and each mapping far away from the image takes three pages of page
 * tables, idle or not: more than init itself needs. */
#pragma once
#include <stddef.h>

/* `given` is the stack pointer at the first instruction. Its arguments and strings are unmapped
 * afterwards. */
void slim_down(const long *given);
void slim_forget(void *p, size_t n); /* the pages that lie in it entirely; their bytes become 0 */
