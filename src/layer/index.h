/* index.h - the index of a checkpoint: every entry of the writable layer (upper) of a box at one moment.
 *
 * The next checkpoint copies only what differs from it, and a comparison of two checkpoints reads
 * nothing else. The file (integers little endian):
 *
 *   struct layer_index_head                        128 bytes
 *   struct layer_index_fixed, path, 0 to 7 zeros   one per entry, sorted (layer_index_compare())
 *
 * The state of all files of a checkpoint is: that of the checkpoint from which its box was created
 * (or of the root of the box), and this index over it. A whiteout removes a name, an opaque folder
 * hides what lies below it.
 *
 * Owns: the format. The reader accepts only what the writer writes: it checks sizes, order, names,
 * types and flags, and that the parent of every entry is a folder. It reads the file once, in order,
 * with a fixed buffer. */
#pragma once
#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

#define LAYER_INDEX_MAGIC 0x7865646e496c7441ull /* "AtlIndex" */
#define LAYER_INDEX_VERSION 1u
#define LAYER_INDEX_PATH 65535u     /* bytes of the longest path */
#define LAYER_INDEX_ID 16           /* as WIRE_ID: an id with its NUL, padded with zeros */
#define LAYER_INDEX_OWNER_MAX 65535 /* the highest id of an owner inside a box */

/* Flags of an entry. WHITEOUT: the name does not exist; mode is that of a character device. OPAQUE: a
 * folder in which nothing of lower layers is visible. MAPPED: a file that a process had mapped
 * shared and writable. HASHED: sha256 is that of the content; of a link that of its target. LOWER: overlayfs has copied it from a
 * lower layer, which has the same name unless it was renamed since. */
enum layer_index_flags {
	LAYER_INDEX_WHITEOUT = 1 << 0,
	LAYER_INDEX_OPAQUE = 1 << 1,
	LAYER_INDEX_MAPPED = 1 << 2,
	LAYER_INDEX_HASHED = 1 << 3,
	LAYER_INDEX_LOWER = 1 << 4,
	LAYER_INDEX_FLAGS = 31
};

struct layer_index_head {
	uint64_t magic;
	uint32_t version;
	uint32_t same;             /* 1: nothing differed from base, there is no layer */
	char id[LAYER_INDEX_ID];   /* of the checkpoint */
	char box[LAYER_INDEX_ID];  /* of the box: inode numbers and times are of its disk */
	char base[LAYER_INDEX_ID]; /* the checkpoint with which it was compared; empty: none */
	uint64_t stop_ns; /* CLOCK_REALTIME_COARSE, as of ctime, when all programs had stopped */
	uint64_t entries;
	uint64_t layer_bytes, content_bytes, files, deleted; /* as in struct wire_checkpointed */
	uint32_t frozen_us, took_us, passes, tracked;
};
_Static_assert(sizeof(struct layer_index_head) == 128, "no padding");

struct layer_index_fixed {
	uint16_t path_len; /* 0: the root, which is always the first entry */
	uint16_t flags;
	uint32_t mode;     /* st_mode */
	uint32_t uid, gid; /* inside the box */
	uint64_t ino, size;
	int64_t mtime_ns, ctime_ns;
	uint64_t xattrs; /* first bytes of the SHA-256 of all attributes; 0: none */
	uint32_t nlink;
	uint32_t pad;                /* 0 */
	char origin[LAYER_INDEX_ID]; /* the checkpoint whose layer has this entry */
	uint8_t sha256[32];          /* 0 unless HASHED */
};
_Static_assert(sizeof(struct layer_index_fixed) == 112, "no padding");

struct layer_index_entry {
	struct layer_index_fixed f;
	const char *path; /* relative to the root of the box, with a NUL after it; until the next
			   * call */
};

/* Order: as memcmp() of the paths, where '/' counts as the smallest byte. The entries of a folder
 * follow it directly. */
int layer_index_compare(const char *a, size_t a_len, const char *b, size_t b_len);

/* ---- reading ---- */

struct layer_index_reader {
	struct layer_index_head head;
	int fd;        /* borrowed */
	uint64_t at;   /* offset of the byte after the buffer */
	uint64_t size; /* of the file */
	uint64_t seen; /* entries so far */
	char *buf;
	size_t from, to; /* what of it is unread */
	char *last;      /* path of the last entry */
	size_t last_len;
	uint32_t *
		folders; /* path lengths of the folders that contain the last entry, the outermost first */
	unsigned nfolders, folders_room;
};

/* fd: a file that can be read at any offset. */
must_check int layer_index_open(struct layer_index_reader *r, int fd, struct err *e);
/* 1: out is the next entry; 0: the end, and the file was whole; -1: e. */
must_check int layer_index_next(struct layer_index_reader *r, struct layer_index_entry *out,
				struct err *e);
void layer_index_close(struct layer_index_reader *r); /* also of one that was not opened */

/* ---- writing ---- */

struct layer_index_writer {
	int fd; /* borrowed */
	uint64_t at;
	uint64_t entries;
	char *buf;
	size_t used;
};

void layer_index_begin(struct layer_index_writer *w, int fd);
/* In the order of layer_index_compare(). */
must_check int layer_index_add(struct layer_index_writer *w, const struct layer_index_fixed *f,
			       const char *path, struct err *e);
/* head: id, box, base, stop_ns and figures. Writes everything; *out_bytes: of the file. */
must_check int layer_index_end(struct layer_index_writer *w, const struct layer_index_head *head,
			       uint64_t *out_bytes, struct err *e);
void layer_index_drop(struct layer_index_writer *w); /* frees its memory, at any time */
