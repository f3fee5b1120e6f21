/* delta_internal.h - shared by delta.c (order of the work, output), delta_walk.c (reads the folder and
 * compares it) and delta_copy.c (content). */
#pragma once
#include "layer/delta.h"
#include "layer/erofs_write.h"
#include <sys/stat.h>

enum {
	DELTA_SMALL = 64 * 1024, /* larger files have no SHA-256 */
	DELTA_DEPTH = 4096,
	DELTA_YOUNG_NS = 10 * 1000 * 1000,
};

enum delta_state {
	DELTA_SAME, /* only in the index */
	DELTA_LEAD, /* a folder that leads to another entry */
	DELTA_CHANGED,
	DELTA_DELETED, /* not in the index */
};

struct delta_item {
	struct layer_index_fixed f;
	size_t path, name; /* offsets in `text`: the path, and its last part */
	size_t xattrs;     /* offset in `text` */
	uint32_t xattr_bytes;
	uint32_t parent;
	uint32_t block; /* of a file that has changed */
	uint8_t state;  /* enum delta_state */
	uint8_t opaque; /* in the layer */
};

enum delta_mark { /* what a walk with a list of touched inodes does at an entry of the base */
		  DELTA_EXAMINE = 1 << 0,
		  DELTA_LIST = 1 << 1,  /* reads the names of the folder */
		  DELTA_BELOW = 1 << 2, /* an entry below the folder has a mark */
};

struct delta_base { /* an entry of the index of the base */
	struct layer_index_fixed f;
	size_t path;
	uint32_t parent; /* of the root: itself */
	uint8_t marks;   /* enum delta_mark */
};

struct delta_copied { /* content in the layer, by inode */
	uint64_t ino, size;
	int64_t ctime_ns, mtime_ns;
	uint64_t trusted_ns; /* valid if ctime is older, and the file was not mapped */
	unsigned pass;       /* that has made it */
	unsigned used;       /* the last pass that found the file changed */
	uint64_t stored;     /* bytes that are not holes */
	uint32_t block, blocks;
	uint8_t hashed, mapped;
	uint8_t again; /* written over an earlier copy */
	uint8_t sha256[32];
};

struct delta_run {
	const struct delta *d;
	struct err *e;
	dev_t dev;
	struct layer_index_head base_head;
	struct delta_base *base;
	size_t nbase;
	char *base_text;
	struct delta_item *items;
	size_t nitems, items_room;
	char *text;
	size_t ntext, text_room;
	size_t next_base; /* during a walk */
	char *path;       /* of the current folder or entry; LAYER_INDEX_PATH + 1 bytes */
	size_t path_len;
	unsigned depth;
	int stopped;
	uint64_t ahead; /* less is copied while programs are stopped */
	int is_attempt; /* ends with too_much if more than `ahead` bytes have changed */
	int too_much;
	unsigned pass; /* number of this walk */
	uint64_t
		began_ns; /* of it, after the list of mapped files; by the clock of ctime, which lags */
	struct delta_mapped mapped;
	uint64_t changed_bytes; /* that this walk has copied, or has left to a later one */
	int left_young;         /* this walk has left files that were written just now */
	uint64_t stored, files, deleted, content;
	struct delta_copied *copied;
	size_t ncopied, copied_room;
	uint32_t *copied_at; /* hash table: 1 + position */
	size_t copied_slots;
	struct erofs_writer w;
	char *small;     /* DELTA_SMALL bytes */
	char *out;       /* collects the content of small files */
	uint64_t out_at; /* offset in the layer */
	size_t out_used;
	char *xattr_names, *xattr_value, *xattr_list;
};

int delta_walk(struct delta_run *r); /* the whole folder, into items */
/* An entry of the base is below the folder `path`. */
int delta_base_is_below(const struct delta_run *r, size_t i, const char *path, size_t len);
/* Sets the marks of the base for the list of touched inodes. */
void delta_mark_touched(struct delta_run *r);
int delta_is_tracked(const struct delta_run *r); /* this pass has such a list */
/* Content of a file that has changed, unless it was copied before and is the same. */
int delta_copy_file(struct delta_run *r, struct delta_item *x, int fd);
/* Sets the hash of a small file without storing it: 1, or 0: it is not small. */
int delta_hash_file(struct delta_run *r, struct layer_index_fixed *f, int fd);
void delta_hash(const void *bytes, size_t n, uint8_t out[32]);
int delta_copy_flush(struct delta_run *r);
int delta_copy_drop_unused(struct delta_run *r); /* copies of files that no longer exist */
int delta_is_mapped(const struct delta_run *r, uint64_t ino, const char *path);
void *delta_grow(void *p, size_t *room, size_t need, size_t size);
size_t delta_keep(struct delta_run *r, const void *bytes, size_t n);
