/* build_copy.h - one COPY or ADD step. For build_copy.c and build_source.c only.
 *
 *   build_source.c  the source box: an unpacked upload, or the root of a stage or image
 *   build_copy.c    selects files there as Docker does, and writes them into the build box
 *
 * The content passes from the file worker of one box to that of the other one through a pipe: the
 * server reads neither archives nor files. */
#pragma once
#include "template/build_internal.h"

enum { COPY_ENTRIES = 200 * 1000, COPY_PATH = 4096, COPY_DEPTH = 64, COPY_USER = 1000 };
#define COPY_CONTEXT "/home/user/context" /* in the source box of an upload */

struct copy_item {
	uint32_t mode; /* st_mode */
	char *from;    /* path in the source box; of content: NULL */
	char *to;      /* path in the build box */
	char *target;  /* of a symbolic link */
	uint64_t mtime_ns;
};

struct build_copy {
	struct build *build;
	/* the source */
	struct build_box source;
	struct exec_reader unpack;
	int unpacking;
	struct exec_input_wait low;
	int fd;        /* of the upload; -1 */
	char base[64]; /* folder of the sources in the source box; "": its root */
	void (*opened)(struct build_copy *c);
	/* the selection */
	unsigned pattern; /* index of the source in progress */
	char **roots;     /* matches, relative to base; a directory ends with a slash */
	unsigned nroots, root;
	struct glob *glob;
	struct copy_item *items;
	unsigned nitems, item;
	/* the destination */
	char dest[COPY_PATH];
	int dest_is_dir;
	uint32_t mode; /* given for all files; 0: none */
	int e2b; /* a source that is a link is copied as a link; the destination has no mode of its
			* own; without an owner, files belong to the current user */
	int has_owner;
	struct build_user owner;
	int chowned;        /* of the item in progress */
	struct buf content; /* text of a heredoc */
};

/* Opens the source box; calls c->opened. */
void build_source_open(struct build_copy *c);
/* Unpacks an archive of the source box into this folder there (ADD); calls c->opened. */
void build_source_unpack(struct build_copy *c, const char *archive, const char *folder);
