/* disk_image.h - ext4 in files: what the disk process does for others. Blocking, single-threaded.
 * Owns: state_dir/volumes. A box's disk has no name; a volume has, and outlives everybody. */
#pragma once
#include "base/err.h"
#include <stdint.h>

/* May another image be as large as this? Not if it, what volumes may still grow, and `promised` (the disks of boxes)
 * would together leave less than a reserve of the file system. */
must_check int image_room(const char *dir, uint64_t promised, uint64_t bytes, struct err *e);
/* Detached mounts: a descriptor, or -1. */
must_check int image_box_disk(const char *dir, uint64_t bytes, uint64_t files, uint32_t uid,
			      struct err *e);
must_check int image_volume_mount(const char *dir, const char *id, int read_only, struct err *e);

must_check int image_volume_make(const char *dir, const char *id, uint64_t bytes, struct err *e);
must_check int image_volume_drop(const char *dir, const char *id, struct err *e);
