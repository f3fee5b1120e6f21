/* layer_walk.h - what the walks through trees of layers share: sorted names of a folder, the
 * SHA-256 of a file, and the first path of each inode. */
#pragma once
#include "base/err.h"
#include "base/sha256.h"
#include <stddef.h>
#include <stdint.h>

struct layer_names {
	char **v;
	size_t n, room;
};

/* In bytewise order, without "." and ".."; the caller keeps dir. */
must_check int layer_names_read(struct layer_names *l, int dir, struct err *e);
void layer_names_fini(struct layer_names *l);
#define auto_layer_names __attribute__((cleanup(layer_names_fini))) struct layer_names

/* From the current position to the end; adds to *bytes. path: for the error. */
must_check int layer_walk_digest(int fd, const char *path, uint8_t out[SHA256_BYTES],
				 uint64_t *bytes, struct err *e);

/* Adds the number of entries, and the bytes of all files; links of one file count once. */
must_check int layer_walk_count(int dir, uint64_t *bytes, uint64_t *files, struct err *e);

/* Which path an inode was found at first: hard links. All inodes are of one file system. */
struct layer_inodes {
	struct layer_inode **bucket;
	size_t n, room;
};

/* Returns the path that was added for this inode, or NULL; then it is added with this path. */
const char *layer_inodes_add(struct layer_inodes *t, uint64_t ino, const char *path);
void layer_inodes_fini(struct layer_inodes *t);
