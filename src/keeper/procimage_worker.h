/* procimage_worker.h - a worker of procimage_process.h: shared by its files.
 * Owns: the images and the checkpoint zygotes of one process image. */
#pragma once
#include "keeper/procimage_process.h"
#include "procimage/confine_list.h"
#include "procimage/image_zygote.h"

struct worker_program { /* the first process of an exec */
	struct image image;
	char *bytes; /* the tables of the image lie in here */
	uint64_t bytes_len;
	int child;   /* pidfd of the snapshot child, until the zygote is built; -1: none */
	int content; /* of its exec: see struct wire_exec_state; -1: none */
	int built;
	struct image_zygote zygote;
	struct wire_image_program about;
};

struct worker_descendant { /* another process of an exec; parents precede their children */
	struct image image;
	char *bytes;
	uint64_t bytes_len;
	int pages; /* a file with those of all runs */
	unsigned exec;
};

struct worker {
	int sock; /* at the keeper */
	struct confine_spec confine;
	struct wire_image_about about;
	struct procimage_source source[PROCIMAGE_PROGRAMS];
	struct worker_program program[PROCIMAGE_PROGRAMS];
	unsigned n;
	struct worker_descendant below[PROCIMAGE_PROGRAMS];
	unsigned nbelow;
};

struct worker_tree { /* the processes of an exec */
	const struct image *image[PROCIMAGE_PROGRAMS];
	struct image_pages pages[PROCIMAGE_PROGRAMS];
	unsigned n;
};
void worker_tree(const struct worker *w, unsigned exec, struct worker_tree *out);

/* Sends a frame to init, and waits for its DONE. */
must_check int worker_request(int init, const void *frame, size_t len, const int *fds,
			      unsigned nfds, struct err *e);
/* Continues all programs in the box of the order. */
must_check int worker_start(struct worker *w, const struct procimage_order *o, const int *fds,
			    unsigned n, struct err *e);
