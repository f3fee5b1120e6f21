/* disk_service.h - disks for boxes that are too large for memory.
 * Owns: the disk service: a process that stays in the host's mount namespace when the keeper leaves
 * it. It creates an unlinked ext4 image, attaches it to a loop device that clears itself, and
 * returns the detached mount. So a crash at any point leaves no file, no device and no mount.
 * Volumes are images with a name, which remain. */
#pragma once
#include "base/err.h"
#include <stdint.h>
#include <sys/types.h>

/* Called before the keeper leaves the host's mounts. state_dir: the folder for images; created if
 * missing. Returns a socket to the process, which ends when the socket is closed. */
must_check int disk_process_start(const char *state_dir, pid_t *out_pid, struct err *e);

/* Volumes: images in state_dir/volumes, by names that volume_id_valid() allows. */
must_check int disk_volume_make(int process, const char *id, uint64_t bytes, struct err *e);
must_check int disk_volume_drop(int process, const char *id, struct err *e);
/* A detached mount, nosuid,nodev, with the owners on the disk: the caller maps the ids. The image
 * is locked as long as the mount exists: exclusively, or shared if read-only. */
must_check int disk_volume_mount(int process, const char *id, int read_only, int *out_mount,
				 struct err *e);

/* promised: the sizes of the disks of all other boxes. ERR_LIMIT if those, the volumes and this one
 * together could fill the file system of state_dir: images are sparse, and a full file system would
 * break every box and the database. */
/* A detached ext4 mount of that size, with its root owned by uid; blocks for about ten
 * milliseconds. Callers on several threads take turns. */
must_check int disk_make(int process, uint64_t bytes, uint64_t files, uint32_t uid,
			 uint64_t promised, int *out_mount, struct err *e);
