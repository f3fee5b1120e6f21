/* erofs_write.h - writes an EROFS image (erofs.h) to a file: content while it is collected, the rest at
 * the end.
 * Owns: the table of entries, in memory.
 *
 *	erofs_write_begin(&w, fd);
 *	block = erofs_write_reserve(&w, size);    the caller writes the content to block * EROFS_BLOCK
 *	erofs_write_root(&w, &root);
 *	n = erofs_write_add(&w, 0, "name", 4, &node);
 *	erofs_write_end(&w, &bytes, e);
 *
 * Entries are added in the order of layer_index_compare(): a folder before its entries, names of a
 * folder in bytewise order. */
#pragma once
#include "base/err.h"
#include "layer/erofs.h"
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct erofs_node {
	uint32_t mode; /* st_mode; S_IFCHR alone: a deleted name */
	uint32_t uid, gid;
	struct timespec mtime;
	uint64_t size;      /* of a file; of a link: of its target */
	uint32_t block;     /* of a file: from erofs_write_reserve(); 0: it is empty */
	const void *xattrs; /* from erofs_write_xattr(), copied; or NULL */
	size_t xattr_bytes;
	const char *target; /* of a link, copied */
};

struct erofs_writer {
	int fd; /* borrowed */
	uint64_t next_block;
	struct erofs_entry *inodes;
	size_t ninodes, inodes_room;
	struct erofs_name *names;
	size_t nnames, names_room;
	char *text; /* names, targets and attributes */
	size_t ntext, text_room;
	char *out; /* what is written next: at this offset of the file */
	uint64_t out_at;
	size_t out_used;
};

/* Appends an attribute user.NAME to a buffer; returns its bytes, 0: it does not fit. name: without
 * "user.". */
size_t erofs_write_xattr(char *buf, size_t room, const char *name, size_t name_len,
			 const void *value, size_t value_len);

void erofs_write_begin(struct erofs_writer *w, int fd);
/* The root folder: once, before all other entries. */
void erofs_write_root(struct erofs_writer *w, const struct erofs_node *root);
/* Blocks for the content of a file. 0: size is 0, or the image has no room for it (16 TiB). */
uint32_t erofs_write_reserve(struct erofs_writer *w, uint64_t size);
/* parent: 0 for the root, or what this function returned for a folder. Returns the number of the new
 * entry. */
uint32_t erofs_write_add(struct erofs_writer *w, uint32_t parent, const char *name, size_t name_len,
			 const struct erofs_node *n);
/* A further name for an entry that is not a folder. */
void erofs_write_link(struct erofs_writer *w, uint32_t parent, const char *name, size_t name_len,
		      uint32_t of);
must_check int erofs_write_end(struct erofs_writer *w, uint64_t *out_bytes, struct err *e);
void erofs_write_fini(struct erofs_writer *w); /* frees its memory, at any time */
