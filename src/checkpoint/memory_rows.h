/* memory_rows.h - what a server remembers about a process image, and the same as a text for the store.
 * Shared by the files about memory of this folder only. */
#pragma once
#include "base/id.h"
#include "store/contexts.h"
#include "store/runs.h"
#include "wire/wire.h"

enum { MEMORY_PROGRAMS = 64 };

struct checkpoint_memory {
	struct checkpoint_memory *next;
	char id[ID_MAX + 1];
	struct wire_image_about about;
	struct wire_image_program program[MEMORY_PROGRAMS];
	struct store_runs runs; /* of the source: those that the image contains */
	struct store_contexts contexts;
	int on_disk;
};

char *checkpoint_memory_text(const struct checkpoint_memory *m); /* for free() */
/* NULL: not such a text. */
struct checkpoint_memory *checkpoint_memory_read(const char *text);
void checkpoint_memory_free_one(struct checkpoint_memory *m);
