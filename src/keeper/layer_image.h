/* layer_image.h - the files of an image layer, named by their content.
 *
 * An image layer keeps what its source had: owners (ids inside the box), modes, times, attributes
 * user.*, hard links, and deletions as overlayfs stores them: a character device 0/0 hides the name
 * below it, the attribute user.overlay.opaque hides the content of a folder below it. It never
 * contains another device, a socket, or an attribute with privileges.
 *
 * The name is the SHA-256 of "atoll layer 2" and the canonical listing: the top folder, then
 * folders depth first, names in bytewise order. Per entry:
 *   kind   'd' folder, 'f' file, 'l' link, 'p' fifo, 'h' a further link to a file, 'w' a deletion
 *   path   and NUL; "" is the top folder
 *   'h'    the path of the first link, NUL. 'h' and 'w' have nothing else
 *   facts  mode, uid, gid, time as text, NUL; per attribute: name NUL length NUL value; then NUL
 *   'f'    the SHA-256 of the content. 'l': the target, NUL */
#pragma once
#include "base/err.h"
#include "keeper/layer_tree.h"
#include <stdint.h>
#include <sys/stat.h>

enum { IMAGE_DEPTH = 256, IMAGE_XATTRS = 65536 };

/* Removes attributes that an image layer must not have, rejects other content that it must not
 * have, and computes the name. root: not changed by any other process. */
must_check int layer_image_finalize(int root, struct layer_tree_sum *out, struct err *e);
/* The same without changes: such an attribute is an error. */
must_check int layer_image_check(int root, struct layer_tree_sum *out, struct err *e);

int layer_image_owner_ok(uint32_t id); /* an id that programs of a box can have */
int layer_image_is_whiteout(const struct stat *st);
/* 1: a file or folder of an image layer may have the attribute. */
int layer_image_xattr_ok(const char *name, const char *value, size_t len, int is_dir);
