/* erofs_read.h - reads an image that erofs_check() has accepted. Nothing is checked again. */
#pragma once
#include "layer/erofs.h"
#include <stddef.h>
#include <stdint.h>

struct erofs_image {
	const uint8_t *bytes;
	size_t len;
	int fd; /* the same file, for its holes */
};

struct erofs_cursor { /* in a folder; starts as 0 */
	uint64_t at;  /* offset of the block in the folder */
	unsigned n;   /* entry of the block */
};

struct erofs_found {
	uint64_t nid;
	const uint8_t *name;
	size_t len;
};

struct erofs_inode erofs_read_inode(const struct erofs_image *m, uint64_t nid);
/* 1: out is the next name of the folder, without "." and ".."; 0: there is none. */
int erofs_read_next(const struct erofs_image *m, const struct erofs_inode *folder,
		    struct erofs_cursor *c, struct erofs_found *out);
/* The attributes of an inode as erofs_write_xattr() makes them; *out_bytes may be 0. */
const uint8_t *erofs_read_xattrs(const struct erofs_image *m, uint64_t nid, size_t *out_bytes);
