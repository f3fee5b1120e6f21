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

/* memory: the process that has the pages, at the addresses of the image. It is read until this returns. confine: what every copy executes first; NULL: nothing. */
int image_zygote_build(struct image_zygote *z, const struct image *im, pid_t memory,
		       const struct confine_spec *confine, struct err *e);

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
