/* files.h - files into a box and out of it, through a worker that lives inside.
 * Owns:         the connection to one file worker and the requests that are under way on it.
 * Does not own: the box; nor any decision about paths inside, which is the worker's kernel's. */
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
/* Ends every program of the box first. One left behind could stop or starve the worker for ever, and
 * change what it looks at. */
must_check int files_open_alone(struct files *f, struct box_handle *b, struct err *e);
void files_close(struct files *f);

/* Puts what src_fd still has to say at `path`, folders above it made too. */
must_check int files_put(struct files *f, int src_fd, const char *path, mode_t mode, struct err *e);
must_check int files_put_new(struct files *f, int src_fd, const char *path, mode_t mode,
			     struct err *e);
must_check int files_put_bytes(struct files *f, const void *bytes, size_t n, const char *path,
			       mode_t mode, struct err *e);

struct files_tally {
	uint64_t files, folders, links, bytes;
	uint64_t skipped; /* devices, sockets, pipes: they mean nothing elsewhere */
	char first_skipped[256];
};
enum { FILES_DEPTH_MAX = 256 };
/* Everything below dir_fd goes below `to`. Links stay links and are never followed. */
must_check int files_put_tree(struct files *f, int dir_fd, const char *to, struct files_tally *out,
			      struct err *e);

/* At most max bytes: what a box sends may have no end. */
must_check int files_get(struct files *f, const char *path, int to_fd, uint64_t max,
			 uint64_t *out_bytes, struct err *e);

/* What the box has changed. Paths are foreign bytes. */
struct files_changes {
	uint32_t max_entries;
	uint64_t hash_bytes;
	void (*each)(void *ctx, const struct wire_entry *entry, const char *path);
	void *ctx;
};
/* 1: there was more than max. */
must_check int files_changes(struct files *f, const struct files_changes *want, struct err *e);
