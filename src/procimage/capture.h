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

/* A pipe or socket whose other end the caller holds. Its descriptors are DESCRIPTOR_OUTSIDE; `offset` is the
 * index here, and the data are the bytes on their way to the program. */
struct capture_outside {
	uint64_t inode; /* of a pipe, or of the other end of a unix socket */
};

struct capture_options {
	unsigned timeout_ms; /* for stopping; 0: 2000 */
	const struct capture_outside *outside;
	unsigned noutside;
	int filters; /* seccomp filters that a program has from its box; with more it is refused */
	/* Files on this device below this folder are mapped again by path; the pages of other mapped files are
	 * in the image, and the file of the program must be such a one. NULL: all files by path. */
	const char *shared_below;
	uint64_t shared_dev;
	/* A connected unix socket whose other end is not found is outside[foreign - 1]; 0: none. */
	unsigned foreign;
	/* The processes of the same tree that were read before, parents first. */
	struct capture *const *before;
	unsigned nbefore;
	uint32_t *objects; /* the last number given to a description that they share */
	/* No snapshot child, which would be a child of the parent of the process: all pages are copied while it is
	 * stopped. */
	int direct;
};

struct capture_saved { /* memory that the snapshot child does not have */
	uint64_t start, bytes;
	int exec; /* PROT_EXEC, or 0 */
	char *content;
};

struct capture {
	struct image image;
	struct tracee tracee;
	struct capture_saved *saved;
	unsigned nsaved;
	unsigned stopped_us; /* how long the source was stopped */
	unsigned took_us;
	uint64_t began_us;
	uint32_t *descriptions; /* indexes of descriptors with a description of their own, sorted */
	uint32_t ndescriptions;
	struct capture_options options;
	int pages; /* of a direct capture: the file with the pages of all runs; else -1 */
};

/* The two halves of capture_take(): after the first one the program is stopped, and its state and its
 * snapshot child exist. On failure the source continues as before and c is empty. */
int capture_hold(struct capture *c, pid_t pid, const struct capture_options *o, struct err *e);
/* For a tree, capture_hold() in three parts: all processes are stopped before the first one is read. */
int capture_stop(struct capture *c, pid_t pid, const struct capture_options *o, struct err *e);
int capture_read(struct capture *c, const struct capture_options *o, struct err *e);
/* Pipes and pairs between them; the first one is the parent of all others. */
int capture_relate(struct capture *const *v, unsigned n, struct err *e);
int capture_release(struct capture *c, struct err *e); /* the source continues */
int capture_complete(struct capture *c,
		     struct err *e); /* after it; the caller calls capture_fini() */
/* On failure the source continues as before and c is empty. */
int capture_take(struct capture *c, pid_t pid, const struct capture_options *o, struct err *e);
void capture_fini(struct capture *c);

/* Process with the memory: the snapshot child. Its addresses are those of the image. */
pid_t capture_memory_pid(const struct capture *c);

/* ---- parts, used by capture.c ---- */
int capture_is_shared_file(const struct capture *c, const char *path, uint64_t dev);
/* The path below shared_below, made in `room`, of a file that a process of an image mapped: its mounts have ended with it,
 * and the kernel prints a path below the root of the mount. `path` itself for any other file. */
const char *capture_find_shared_path(const struct capture *c, const char *path, uint64_t dev,
				     uint64_t ino, char *room, size_t bytes);
int capture_read_areas(struct capture *c, struct err *e);    /* source stopped, before the fork */
int capture_save_unforked(struct capture *c, struct err *e); /* source stopped, after the fork */
int capture_read_flags(struct capture *c, struct err *e);    /* from the child */
int capture_restore_unforked(struct capture *c, struct err *e);
int capture_read_runs(struct capture *c, struct err *e);
int capture_copy_pages(struct capture *c, struct err *e); /* of a direct capture */
/* source stopped */
int capture_read_program(struct capture *c, const struct capture_options *o, struct err *e);
int capture_ask_child(struct capture *c, struct err *e);
int capture_read_descriptors(struct capture *c, const struct capture_options *o, struct err *e);
