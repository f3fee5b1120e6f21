/* layer_tree.h - the files of a layer: written from a stranger's words, then sealed and named by what they
 * are.
 *
 * The writer runs without privilege, in a folder that is its root. The sealer is privileged and
 * believes nothing of what it finds: it opens every name itself, follows no link, and makes owner,
 * mode and time the same for all, so that two trees with the same content are the same tree.
 *
 * The name is the SHA-256 of the canonical listing: folders depth first, names in bytewise order,
 * per entry its kind ('d' folder, 'f' file, 'x' executable, 'l' link), its path, NUL, and the
 * SHA-256 of its content, or where it leads and NUL. */
#pragma once
#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

enum { TREE_ID = 64, TREE_PATH = 4096, TREE_DEPTH = 64 };

/* Relative, no '.', '..' or empty part, at most TREE_DEPTH of them, below a place that layers may
 * have: what else is at the top of a box's root is the box's own. */
int layer_tree_path_ok(const char *path);
int layer_tree_id_ok(const char *id); /* 64 hexadecimal digits, in lower case, and a NUL */

/* ---- the writer ---- */
struct layer_tree {
	int root;
	uint64_t bytes_most, files_most;
	uint64_t bytes, files; /* so far; folders and links are files, too */
};

/* Each is refused if the name is there already; the folder it is in must be. */
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

/* Makes everything root's, 0755 or 0644 and of one time, and says what it is. */
must_check int layer_tree_finalize(int root, struct layer_tree_sum *out, struct err *e);
/* The same without touching anything; what is not as layer_tree_finalize() leaves it is an error. */
must_check int layer_tree_check(int root, struct layer_tree_sum *out, struct err *e);
/* A folder with all that is in it; follows nothing. */
must_check int layer_tree_remove(int dir, const char *name, struct err *e);
