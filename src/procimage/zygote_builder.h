/* zygote_builder.h - what is collected while a process prepares to become a checkpoint zygote. */
#pragma once
#include "base/err.h"
#include "procimage/call_list.h"
#include "procimage/image.h"
#include <sys/types.h>

struct confine_spec;
struct image_instead;
struct image_pages;

enum {
	ZYGOTE_FIRST_FILE = 5, /* descriptors from here on are closed when the memory is complete */
	ZYGOTE_PAGES =
		5, /* the file with the pages of the first process; those of its descendants follow */
	ZYGOTE_SPANS = 16384
};

struct span {
	uint64_t start, end;
};

struct builder {
	const struct image *im;
	const struct confine_spec *confine; /* or NULL */
	int pages;                          /* the file with all pages, one after the other */
	int in_process; /* or /proc/PID/mem of the process that has them at their addresses */
	struct call_list build;
	struct call_data *data;
	struct span kernel[8]; /* vvar and vDSO of this process */
	unsigned nkernel;
	uint64_t aside; /* where they wait */
	int *files;     /* descriptor per file of the image, -1 if it is not mapped here */
	const struct image_instead *instead; /* or NULL */
	int vdso;                            /* a file with the code of another kernel; -1: none */
	int exe;                             /* -1: the copy opens it */
	int below; /* a descendant: the list is executed by a process that was forked in the copy */
};

/* Of all its pages of the kernel. */
uint64_t zygote_kernel_bytes(const struct builder *b);
/* The calls that replace the memory of this process; `block` stays. */
int zygote_make_build_list(struct builder *b, uint64_t block, uint64_t block_bytes, struct err *e);
/* The executable, where it is a file of the disk of the box: opened there with the rights of its user. */
void zygote_add_own_program(struct builder *b, struct call_list *l);
/* The processes of a tree, their zombies and helpers, as restorer_process. */
int zygote_make_processes(const struct image *const *v, unsigned n, struct restorer_process *to,
			  unsigned index[], struct err *e);
