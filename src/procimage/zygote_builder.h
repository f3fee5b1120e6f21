/* zygote_builder.h - what is collected while a process prepares to become a checkpoint zygote. */
#pragma once
#include "base/err.h"
#include "procimage/call_list.h"
#include "procimage/image.h"
#include <sys/types.h>

struct confine_spec;

enum {
	ZYGOTE_FIRST_FILE = 5
}; /* descriptors from here on are closed when the memory is complete */

struct span {
	uint64_t start, end;
};

struct builder {
	const struct image *im;
	const struct confine_spec *confine; /* or NULL */
	struct call_list build;
	struct call_data data;
	struct span own[4096];
	unsigned nown;
	struct span kernel[8]; /* vvar and vDSO of this process */
	unsigned nkernel;
	uint64_t aside; /* where they wait */
	int *files;     /* descriptor per file of the image, -1 if it is not mapped here */
	int exe;
	uint64_t code_bytes;
};

/* The calls that replace the memory of this process; `block` stays. */
int zygote_make_build_list(struct builder *b, uint64_t block, uint64_t block_bytes, pid_t memory,
			   struct err *e);
