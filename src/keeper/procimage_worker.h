/* procimage_worker.h - a worker of procimage_process.h: shared by its files.
 * Owns: the images and the checkpoint zygotes of one process image. */
#pragma once
#include "keeper/procimage_process.h"
#include "procimage/confine_list.h"
#include "procimage/image_zygote.h"

struct worker_program {
	struct image image;
	char *bytes; /* the tables of the image lie in here */
	int content; /* of its exec: see struct wire_exec_state; -1: none */
	int built;
	struct image_zygote zygote;
	struct wire_image_program about;
};

struct worker {
	int sock; /* at the keeper */
	struct confine_spec confine;
	struct wire_image_about about;
	struct procimage_source source[PROCIMAGE_PROGRAMS];
	struct worker_program program[PROCIMAGE_PROGRAMS];
	unsigned n;
};

/* Sends a frame to init, and waits for its DONE. */
must_check int worker_request(int init, const void *frame, size_t len, const int *fds,
			      unsigned nfds, struct err *e);
/* Continues all programs in the box of the order. */
must_check int worker_start(struct worker *w, const struct procimage_order *o, const int *fds,
			    unsigned n, struct err *e);
