/* disk_service.h - disks for boxes that want more than memory should hold.
 * Owns: the disk process: it stays in the host's mount namespace when the keeper leaves it, makes
 * an unlinked ext4 image, attaches it to a loop device that clears itself, and hands back the
 * detached mount. So a crash at any point leaves no file, no device and no mount. Volumes are images
 * that have a name and stay. */
#pragma once
#include "base/err.h"
#include <stdint.h>

/* Before the keeper leaves the host's mounts. state_dir: where images live; made if missing.
 * Returns a socket to the process; it ends when that closes. */
must_check int disk_process_start(const char *state_dir, struct err *e);

/* Volumes: images in state_dir/volumes, by names that volume_id_valid() allows. */
must_check int disk_volume_make(int process, const char *id, uint64_t bytes, struct err *e);
must_check int disk_volume_drop(int process, const char *id, struct err *e);
/* A detached mount, nosuid,nodev, owners as on the disk: the caller shifts them. The image is locked
 * for as long as the mount lives, whoever else does: exclusively, or shared if read-only. */
must_check int disk_volume_mount(int process, const char *id, int read_only, int *out_mount,
				 struct err *e);

/* promised: the sizes of all other boxes' disks. ERR_LIMIT where those, the volumes and this one could together fill
 * the file system of state_dir: images are sparse, and a full one would fail every box, and the database. */
/* A detached ext4 mount of that size, its root owned by uid; blocks for some ten milliseconds.
 * Callers on several threads take turns. */
must_check int disk_make(int process, uint64_t bytes, uint64_t files, uint32_t uid,
			 uint64_t promised, int *out_mount, struct err *e);
