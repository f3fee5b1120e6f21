/* procimage_mapped.h - what programs have mapped of their machine, in the file of an image: the code of its kernel, and in a portable
 * image the files of /usr.
 * Owns: the layout of these sections. */
#pragma once
#include "keeper/procimage_cipher.h"
#include "keeper/procimage_worker.h"

enum { MAPPED_FILES = 4096 };

struct mapped_file { /* the part of it that programs have mapped */
	char path[4096];
	uint64_t size, mtime_ns, start, end;
};

struct mapped_list {
	struct mapped_file *v;
	unsigned n;
};

/* All files of /usr that the images name. */
void mapped_collect(const struct worker *w, struct mapped_list *out);
void mapped_free(struct mapped_list *l);
must_check int mapped_save_kernel(struct cipher *c, struct err *e);
must_check int mapped_save(const struct mapped_list *l, struct cipher *c, struct err *e);

/* other: the image is of another kernel than this one. */
must_check int mapped_load_kernel(struct worker *w, struct cipher *c, int other, struct err *e);
/* Those that this machine does not have are kept for the zygotes. */
must_check int mapped_load(struct worker *w, struct cipher *c, unsigned n, struct err *e);
