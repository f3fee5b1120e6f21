/* delta.h - what changed in a folder since a checkpoint, as an EROFS image and an index.
 *
 * The folder is the writable layer (upper) of an overlay, with userxattr, index=off and metacopy=off. Programs
 * change it, except between `stop` and `release`. Everything in it is untrusted: no link is
 * followed, no other file system is entered, no fifo, socket or device is opened, bytes and names are
 * counted. All calls are unprivileged, except that the caller must be able to read every file.
 *
 *   1 stop; a walk that copies what has changed
 *   2 if that is more than 8 MiB: release; passes while programs run, which copy ahead; stop; the same walk again,
 *     which copies what is new since then. Without a base, this begins with the passes
 *   3 release; then folders, inodes and the index are written
 *
 * An entry is unchanged if inode, size, mode, owners and times equal those in the index of the base, with the
 * three additions of enum delta_rule.
 *
 * With a list of touched inodes (struct delta_mapped) only these are examined; all else is as in the index of the base. */
#pragma once
#include "base/err.h"
#include "layer/index.h"
#include <stddef.h>
#include <stdint.h>

enum delta_rule {
	DELTA_YOUNG =
		1 << 0, /* content is compared if ctime is not 10 ms older than the stop of the
				* base: the clock of ctime is coarse */
	DELTA_MAPPED = 1 << 1, /* content is compared if a process had the file mapped shared and
				* writable then, or has now: dirty pages change no time */
	DELTA_FOLDER =
		1 << 2, /* a folder with another inode hides the one of the base; a name that is
				* gone is deleted */
	DELTA_RULES = 7,
};

struct delta_touched {
	uint64_t ino;
	uint64_t names; /* of a folder: 1: names in it may have changed */
};

struct delta_mapped { /* files that are mapped shared and writable; the lists may have too many */
	uint64_t *inodes;
	size_t ninodes;
	char *paths; /* relative to the root of the box, as in /proc/PID/maps, a NUL after each */
	size_t paths_bytes;
	/* With change tracking: all inodes that may differ from the base, in ascending order, each once. Nothing
	 * else is examined. Folders that do not exist in the base are read completely. */
	struct delta_touched *touched;
	size_t ntouched;
	int is_tracked; /* 0: there is no such list */
};
void delta_mapped_fini(struct delta_mapped *m);

struct delta {
	int upper;        /* the folder; all descriptors are borrowed */
	int layer, index; /* empty files, which are written */
	int base;         /* the index of the base; -1: none */
	char id[LAYER_INDEX_ID], box[LAYER_INDEX_ID], base_id[LAYER_INDEX_ID];
	uint64_t bytes_most, files_most;
	uint64_t ahead_bytes; /* 0: 8 MiB. Less is copied while programs are stopped */
	uint64_t used_bytes;  /* of the disk of the box: no more can have changed */
	unsigned rules;       /* DELTA_RULES; fewer only in tests */
	uint64_t
		ctime_grain_ns; /* 0; tests: ctime is rounded down to a multiple, as on a host with a
				  * coarse clock */
	/* Programs have stopped when it returns 0. Also the list of mapped files, as they are then. */
	int (*stop)(void *ctx, struct delta_mapped *out, struct err *e);
	void (*release)(void *ctx); /* programs may continue. Not called after a failure */
	/* The list of mapped files, while programs run. */
	int (*list)(void *ctx, struct delta_mapped *out, struct err *e);
	void *ctx;
};

struct delta_sum {
	uint64_t layer_bytes;  /* of the file; 0: nothing differs, and nothing was written to it */
	uint64_t stored_bytes; /* the same without holes */
	uint64_t index_bytes, content_bytes, files, deleted, entries;
	uint64_t stop_ns;
	uint32_t passes;
	uint32_t tracked; /* 1: only the list of touched inodes was examined */
};

must_check int delta_write(const struct delta *d, struct delta_sum *out, struct err *e);
/* After delta_write() and release: writes the head of the index with the final figures. */
must_check int delta_write_head(const struct delta *d, const struct delta_sum *sum,
				uint32_t frozen_us, uint32_t took_us, struct err *e);
/* Loads what SHA-256 needs. Before a process gives up its rights. */
void delta_warm_up(uint8_t out[32]);
