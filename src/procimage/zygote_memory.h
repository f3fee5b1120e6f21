/* zygote_memory.h - replaces the memory of the calling process by that of an image. */
#pragma once
#include "base/err.h"
#include "procimage/image.h"
#include <sys/types.h>

struct confine_spec;
struct image_tree;

#define ZYGOTE_FAILURE UINT64_C(0x6661696c65640000)
struct zygote_failure { /* on the control socket, while there still is a C library */
	uint64_t magic;
	struct err err;
};

/* Returns only on failure; *control is then the descriptor on which the caller can report it. */
void zygote_memory_become(const struct image_tree *tree, const struct confine_spec *confine,
			  int *control, struct err *e);
/* Bytes of lists, frames and stacks for an image, at most. */
uint64_t zygote_memory_bound(const struct image *im);
