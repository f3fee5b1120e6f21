/* kernel_image.h - the kernel of guests: its file, whether it is complete and for this processor,
 * and which of its modules a guest loads in which order.
 * Owns: nothing. The parsers are pure functions of bytes. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

enum { KERNEL_HEAD = 1024, KERNEL_RELEASE = 80, KERNEL_MODULES = 24 };

/* The first bytes of a kernel image, and the size of its file. machine: "x86_64" or "aarch64". */
must_check int kernel_check(const void *head, size_t n, uint64_t file_bytes, const char *machine,
			    struct err *e);

struct kernel_image {
	char path[256];    /* of the kernel */
	char modules[256]; /* folder with its modules */
	char release[KERNEL_RELEASE];
};

/* The newest kernel for virtual machines ("cloud"), else the newest one; in <root>/boot. */
must_check int kernel_find(const char *root, struct kernel_image *out, struct err *e);

/* The value of "depends=" in a module: names separated by commas, "" without one; NULL: these bytes
 * are no module. */
const char *kernel_module_needs(const char *bytes, size_t n);

struct kernel_module {
	char name[64];
	struct buf bytes;
};

struct kernel_modules { /* in the order of loading */
	struct kernel_module at[KERNEL_MODULES];
	unsigned n;
};

/* Reads the modules that guests need, with those they depend on. A module that the kernel
 * contains (modules.builtin) is left out. */
must_check int kernel_read_modules(const struct kernel_image *k, struct kernel_modules *out,
				   struct err *e);
void kernel_modules_fini(struct kernel_modules *m);
