/* image_zygote.h - a process that holds the memory of one captured program and forks copies of it.
 *
 * It is forked from the caller, replaces its own memory by that of the image, and executes only the code
 * of restorer.c. It never executes an instruction of the captured program.
 * Owns: the process, until image_zygote_fini(). */
#pragma once
#include "procimage/image.h"
#include <sys/types.h>

struct confine_spec;
struct err;

struct image_zygote {
	pid_t pid;
	int control;
	unsigned outside; /* descriptors that each copy needs */
	unsigned took_us;
};

/* Where the pages of an image are. They are read until image_zygote_build() returns. */
struct image_pages {
	pid_t process; /* that has them at the addresses of the image; 0: none */
	int file;      /* else: those of all runs, one after the other */
};

/* A file that the machine has no longer as it was, by path, size and time. */
struct image_stored_file {
	const char *path;
	uint64_t size, mtime_ns;
	int fd;
};

struct image_instead { /* of a caller that does not end before the zygote is built */
	const struct image_stored_file *files;
	unsigned nfiles;
	int vdso; /* the code of another kernel (vdso.h); -1: this kernel has the same */
	uint64_t vdso_bytes;
};

/* A program and its descendants, parents first. Only the pages of the first one may lie in a process. */
struct image_tree {
	const struct image *const *image;
	const struct image_pages *pages;
	unsigned n;
	int clock; /* a time namespace in which all copies run (program_clock.h); -1: that of the caller */
	const struct image_instead *instead; /* NULL: the machine has everything */
};

int image_zygote_build_tree(struct image_zygote *z, const struct image_tree *tree,
			    const struct confine_spec *confine, struct err *e);
/* confine: what every copy executes first; NULL: nothing. */
int image_zygote_build(struct image_zygote *z, const struct image *im,
		       const struct image_pages *pages, const struct confine_spec *confine,
		       struct err *e);
/* Writes the pages of all runs, in order, to a pipe. May be called in a child of the owner of the zygote. */
int image_zygote_write_pages(const struct image_zygote *z, const struct image *im, int to,
			     struct err *e);

struct image_target {
	int init;       /* pidfd of the init of the pid namespace, or -1: the caller's namespace */
	int namespaces; /* CLONE_NEW* to enter with it */
	int helper; /* pid for the helper in that namespace, above all pids of the image; 0: any */
	const int *tasks; /* files `tasks` of cgroups (v1), open for writing */
	unsigned ntasks;
	const int *outside;
	unsigned noutside;
};

/* Forks a copy and waits until it is complete. It continues when a byte is written to *out_socket, and
 * ends when that is closed before. */
int image_zygote_fork(struct image_zygote *z, const struct image_target *t, int *out_socket,
		      struct err *e);
void image_zygote_fini(struct image_zygote *z);
