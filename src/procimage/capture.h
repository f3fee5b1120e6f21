/* capture.h - takes a process image of a running program.
 *
 * Order: stop all threads; read what can be read only of a stopped program; fork a snapshot child; release the
 * source; complete the image from the child. The source continues after about the time that fork()
 * takes, and its memory is copied from the child while it runs.
 * Owns: the image, and the snapshot child until capture_fini(). */
#pragma once
#include "procimage/image.h"
#include "procimage/tracee.h"

struct err;

struct capture_outside { /* a pipe or socket whose other end the caller holds */
	uint64_t inode;
};

struct capture_options {
	unsigned timeout_ms; /* for stopping; 0: 2000 */
	const struct capture_outside *outside;
	unsigned noutside;
	int filters; /* seccomp filters that a program has from its box; with more it is refused */
};

struct capture_saved { /* memory that the snapshot child does not have */
	uint64_t start, bytes;
	char *content;
};

struct capture {
	struct image image;
	struct tracee tracee;
	struct capture_saved *saved;
	unsigned nsaved;
	unsigned stopped_us; /* how long the source was stopped */
	unsigned took_us;
};

/* On failure the source continues as before and c is empty. */
int capture_take(struct capture *c, pid_t pid, const struct capture_options *o, struct err *e);
void capture_fini(struct capture *c);

/* Process with the memory: the snapshot child. Its addresses are those of the image. */
pid_t capture_memory_pid(const struct capture *c);

/* ---- parts, used by capture.c ---- */
int capture_read_areas(struct capture *c, struct err *e);    /* source stopped, before the fork */
int capture_save_unforked(struct capture *c, struct err *e); /* source stopped, after the fork */
int capture_read_flags(struct capture *c, struct err *e);    /* from the child */
int capture_restore_unforked(struct capture *c, struct err *e);
int capture_read_runs(struct capture *c, struct err *e);
/* source stopped */
int capture_read_program(struct capture *c, const struct capture_options *o, struct err *e);
int capture_ask_child(struct capture *c, struct err *e);
int capture_read_descriptors(struct capture *c, const struct capture_options *o, struct err *e);
