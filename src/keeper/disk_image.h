/* disk_image.h - ext4 in files: the work of the disk service. Blocking, single-threaded.
 * Owns: state_dir/volumes. The disk of a box has no name; a volume has one, and remains. */
#pragma once
#include "base/err.h"
#include <stdint.h>

/* Checks that another image may be this large: the image, the growth of volumes and `promised` (the
 * disks of boxes) together must leave a reserve of the file system. */
must_check int image_room(const char *dir, uint64_t promised, uint64_t bytes, struct err *e);
/* Both return a descriptor of a detached mount, or -1. */
must_check int image_box_disk(const char *dir, uint64_t bytes, uint64_t files, uint32_t uid,
			      struct err *e);
must_check int image_volume_mount(const char *dir, const char *id, int read_only, struct err *e);

must_check int image_volume_make(const char *dir, const char *id, uint64_t bytes, struct err *e);
must_check int image_volume_drop(const char *dir, const char *id, struct err *e);
