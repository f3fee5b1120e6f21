/* checkpoint_mount.h - mounts of checkpoint layers, in the layer store.
 * Owns: one detached mount per layer (one superblock, one page cache for all boxes), until 60 s after its last user.
 * A box gets a clone of it, whose ids are shifted by the caller. */
#pragma once
#include "base/err.h"

enum { CHECKPOINT_MOUNT_IDLE_S = 60 };

/* A clone, read-only, nosuid, nodev. dir: of checkpoint_store_open(). */
must_check int checkpoint_mount_get(int dir, const char *id, struct err *e);
/* No box has the layer now; its mount is closed after a while, unless it is needed again. */
void checkpoint_mount_release(const char *id);
/* Its file was deleted: a later layer of this id is another one. Boxes that have it keep it. */
void checkpoint_mount_forget(const char *id);
/* Closes those that are due. Returns the milliseconds until the next one is; -1: none waits. */
int checkpoint_mount_expire(void);
/* Whether this kernel mounts EROFS images from files of this folder; e: why not, and what to do. */
must_check int checkpoint_mount_possible(int dir, const char *folder, struct err *e);

/* CHECKPOINT_LOOP: through a read-only loop device; CHECKPOINT_FILE: that is tried first, which needs Linux 6.12 and a file
 * system with a page cache of its own, so no tmpfs. */
enum checkpoint_way { CHECKPOINT_FILE, CHECKPOINT_LOOP };
/* A detached mount of an image. */
must_check int checkpoint_mount_image(int file, enum checkpoint_way way, struct err *e);
