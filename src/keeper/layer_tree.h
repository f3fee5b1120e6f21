/* layer_tree.h - the files of a layer: written from untrusted input, then finalized and named by
 * their content.
 *
 * The writer runs without privilege, in a folder that is its root. The sealer is privileged and
 * trusts nothing that it finds: it opens every name itself, follows no link, and sets the same
 * owner, mode and time for all, so that two trees with the same content are identical.
 *
 * The name is the SHA-256 of the canonical listing: folders depth first, names in bytewise order,
 * per entry its kind ('d' folder, 'f' file, 'x' executable, 'l' link), its path, NUL, and the
 * SHA-256 of its content, or the target of the link and NUL. */
#pragma once
#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

enum { TREE_ID = 64, TREE_PATH = 4096, TREE_DEPTH = 64 };

/* Checks that a path is relative, has no '.', '..' or empty part, at most TREE_DEPTH parts, and is
 * below a folder that layers may have: other folders at the root belong to the box. */
int layer_tree_path_ok(const char *path);
int layer_tree_id_ok(const char *id); /* 64 hexadecimal digits, in lower case, and a NUL */

/* ---- the writer ---- */
struct layer_tree {
	int root;
	uint64_t bytes_most, files_most;
	uint64_t bytes, files; /* so far; folders and links count as files */
};

/* Each fails if the name exists already, or if its folder does not exist. */
must_check int layer_tree_dir(struct layer_tree *t, const char *path, struct err *e);
must_check int layer_tree_link(struct layer_tree *t, const char *path, const char *target,
			       struct err *e);
must_check int layer_tree_file(struct layer_tree *t, const char *path, int executable, int *out_fd,
			       struct err *e);
must_check int layer_tree_bytes(struct layer_tree *t, int fd, const void *bytes, size_t n,
				struct err *e);

/* ---- the sealer ---- */
struct layer_tree_sum {
	char id[TREE_ID + 1];
	uint64_t bytes, files;
};

/* Sets owner root, mode 0755 or 0644 and one time for all, and computes the name. */
must_check int layer_tree_finalize(int root, struct layer_tree_sum *out, struct err *e);
/* The same without changes; any difference from the result of layer_tree_finalize() is an error. */
must_check int layer_tree_check(int root, struct layer_tree_sum *out, struct err *e);
/* Removes a folder with its content; follows no links. */
must_check int layer_tree_remove(int dir, const char *name, struct err *e);
