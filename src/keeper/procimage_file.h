/* procimage_file.h - where process images are on the disk: <state>/checkpoints/images/<id>, mode 0600, and the key that all of
 * them are encrypted with: <state>/checkpoints/key, 64 hexadecimal digits.
 * Owns: both. An image is written to an unnamed file and linked when it is complete.
 * Does not own: what is in the files (procimage/sealed_image.h). */
#pragma once
#include "base/err.h"
#include <stdint.h>

enum { PROCIMAGE_KEY = 32 };

/* dir: of checkpoint_store_open(). */
must_check int procimage_file_new(int dir, struct err *e); /* an unnamed file */
must_check int procimage_file_link(int dir, int fd, const char *id, struct err *e);
/* ERR_NOT_FOUND: the checkpoint has no process image. */
must_check int procimage_file_open(int dir, const char *id, struct err *e);
must_check int procimage_file_sync(int dir, const char *id, struct err *e); /* fine without one */
must_check int procimage_file_drop(int dir, const char *id, struct err *e); /* fine without one */
/* create: if there is none yet. */
must_check int procimage_file_key(int dir, int create, uint8_t key[PROCIMAGE_KEY], struct err *e);
