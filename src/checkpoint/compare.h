/* compare.h - what differs between the files of two checkpoints: from lists of their entries, without their contents. */
#pragma once
#include "checkpoint/files.h"

enum checkpoint_change {
	CHANGE_ADDED,
	CHANGE_DELETED,
	CHANGE_CONTENT, /* of a file, or the target of a link */
	CHANGE_MODE,    /* mode, owner or attributes; the content is equal */
	CHANGE_TYPE,
	CHANGE_RENAMED, /* one name was deleted, one was added, and their contents are equal */
};
const char *checkpoint_change_name(enum checkpoint_change change);

struct checkpoint_difference {
	enum checkpoint_change change;
	const char *path;                          /* relative to the root of the box */
	const char *was;                           /* RENAMED: the path before */
	const struct layer_index_fixed *from, *to; /* NULL: none, or that of the root of the box */
};

struct checkpoint_differences {
	struct checkpoint_difference *v; /* by path; texts are those of both lists */
	size_t n, room;
};
/* Files that only a folder of another inode number distinguishes are equal. A file of more than 64 KiB that was written in both
 * boxes is different, because its content is not known. */
void checkpoint_compare(const struct checkpoint_files *a, const struct checkpoint_files *b,
			struct checkpoint_differences *out);
/* Of two files or links: by SHA-256, else by the layer and the inode. */
int checkpoint_content_differs(const struct layer_index_fixed *a,
			       const struct layer_index_fixed *b);
void checkpoint_differences_fini(struct checkpoint_differences *d);
