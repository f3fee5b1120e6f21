/* files.h - copies files into a box and out of it, through a file worker inside the box.
 * Owns:         the connection to one file worker and the requests in progress on it.
 * Does not own: the box; nor any decision about paths, which the kernel makes inside the box. */
#pragma once
#include "base/err.h"
#include "client/box_handle.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct files {
	int fd;
	uint32_t next_ref;
	unsigned waiting; /* requests without an answer yet */
};

must_check int files_open(struct files *f, struct box_handle *b, struct err *e);
/* Kills every program of the box first. A remaining program could stop the worker, use up its CPU
 * time, or change files while they are read. */
must_check int files_open_alone(struct files *f, struct box_handle *b, struct err *e);
void files_close(struct files *f);

/* Copies the rest of src_fd to `path`, and creates missing folders above it. */
must_check int files_put(struct files *f, int src_fd, const char *path, mode_t mode, struct err *e);
must_check int files_put_bytes(struct files *f, const void *bytes, size_t n, const char *path,
			       mode_t mode, struct err *e);

struct files_tally {
	uint64_t files, folders, links, bytes;
	uint64_t skipped; /* devices, sockets, pipes: not copied */
	char first_skipped[256];
};
enum { FILES_DEPTH_MAX = 256 };
/* Copies everything below dir_fd to `to`. Links are copied as links and never followed. */
must_check int files_put_tree(struct files *f, int dir_fd, const char *to, struct files_tally *out,
			      struct err *e);

/* At most max bytes, because a box could send without end. */
must_check int files_get(struct files *f, const char *path, int to_fd, uint64_t max,
			 uint64_t *out_bytes, struct err *e);

/* Files that the box has changed. Paths are untrusted bytes. */
struct files_changes {
	uint32_t max_entries;
	uint64_t hash_bytes;
	void (*each)(void *ctx, const struct wire_entry *entry, const char *path);
	void *ctx;
};
/* Returns 1 if there were more than max. */
must_check int files_changes(struct files *f, const struct files_changes *want, struct err *e);
