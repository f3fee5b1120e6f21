/* image_tree.h - writes the entries of an image's archive below a folder, as a layer of an overlay.
 * Owns: nothing; the caller has the descriptor of the folder.
 *
 * Links that the archive has made are followed as a process would follow them whose root is this
 * folder (umoci and Docker do the same), never the last part of a name. What an entry replaces is
 * removed first, so nothing is written through a link. A folder that lies above an entry and is not
 * in the archive is created: root's, mode 0755, time 0.
 *
 * Deletions (whiteouts) of the OCI format become deletions of an overlay:
 *   dir/.wh.NAME      a character device 0:0 with that name; if this archive also has the folder
 *                     NAME, that folder hides the one of the layers below (opaque)
 *   dir/.wh..wh..opq  the folder dir is opaque: extended attribute user.overlay.opaque = "y" */
#pragma once
#include "base/err.h"
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

enum { IMAGE_TREE_PATH = 4096, IMAGE_TREE_DEPTH = 128 };
#define IMAGE_TREE_OPAQUE "user.overlay.opaque"

struct image_entry {
	char path[IMAGE_TREE_PATH]; /* image_tree_clean(); empty: the folder itself */
	mode_t mode;                /* with its type: S_IFREG, S_IFDIR, S_IFLNK or S_IFIFO */
	uint32_t uid, gid;
	struct timespec mtime;
};

/* A name of an archive without '.', '..', empty parts, and '/' at its ends. A name that leaves the
 * root or is too long is an error. */
must_check int image_tree_clean(const char *name, char out[IMAGE_TREE_PATH], struct err *e);

/* Each replaces an entry with this name that is not a folder, or both are folders. Parents' times
 * do not change. */
must_check int image_tree_dir(int root, const struct image_entry *in, int *out_fd, struct err *e);
must_check int image_tree_file(int root, const struct image_entry *in, int *out_fd, struct err *e);
must_check int image_tree_fifo(int root, const struct image_entry *in, struct err *e);
must_check int image_tree_symlink(int root, const struct image_entry *in, const char *target,
				  struct err *e);
/* target: image_tree_clean(); must exist already, and must be no folder. */
must_check int image_tree_hardlink(int root, const char *path, const char *target, struct err *e);
must_check int image_tree_whiteout(int root, const char *path, struct err *e);
must_check int image_tree_opaque(int root, const char *dir, struct err *e);

/* Owner, mode and time of an open file or folder; after its content. */
must_check int image_tree_finish(int fd, const struct image_entry *in, struct err *e);
