/* procimage_worker.h - a worker of procimage_process.h: shared by its files.
 * Owns: the images and the checkpoint zygotes of one process image. */
#pragma once
#include "keeper/procimage_process.h"
#include "procimage/confine_list.h"
#include "procimage/image_zygote.h"
#include "procimage/program_clock.h"

struct worker_program { /* the first process of an exec */
	struct image image;
	char *bytes; /* the tables of the image lie in here */
	uint64_t bytes_len;
	int child;   /* pidfd of the snapshot child, until the zygote is built; -1: none */
	int content; /* of its exec: see struct wire_exec_state; -1: none */
	int built;
	struct program_clock clock; /* of its tree */
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
	struct image_instead instead; /* LOAD */
	struct image_stored_file *stored;
	struct worker_descendant below[PROCIMAGE_PROGRAMS];
	unsigned nbelow;
	uint64_t features; /* of the box that it was captured in */
	/* The programs of the source stay stopped: the connection to its init, and to the capture; else -1. */
	int held_init, held_capture;
	pid_t capture;
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

/* A private copy of the tables of an image is at *out, and the image refers to it. Limits are cut to those of boxes. */
must_check int worker_decode_image(struct image *im, char *take_bytes, uint64_t bytes,
				   struct err *e);
/* The same for a file of a capture, which could still change it. */
must_check int worker_read_image(struct image *im, char **out, uint64_t *out_len, int file,
				 uint64_t bytes, struct err *e);
/* Test builds: see struct procimage_order. */
void worker_set_test(uint32_t without, uint32_t spoil);
/* procimage_save.c: everything to a file, by a confined process that encrypts it. */
must_check int worker_save(struct worker *w, const struct procimage_order *o, int file,
			   uint64_t *out_bytes, struct err *e);
/* procimage_load.c: an empty worker gets the images of a file, which a confined process decrypts, and their zygotes. */
must_check int worker_load(struct worker *w, const struct procimage_order *o, int file,
			   struct err *e);
/* Builds the zygote of an exec whose pages are in a process or a file. */
must_check int worker_build(struct worker *w, unsigned exec, const struct image_pages *pages,
			    struct err *e);
