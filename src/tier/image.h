/* image.h - the files that guests start from: the first root (initramfs) and the image of /usr.
 * Owns: the bytes that it returns. No image that a guest could have written is ever read here, and no
 * image is ever mounted by the kernel of the host. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "tier/kernel_image.h"
#include "tier/tier.h"
#include <stdint.h>

/* /mux (mux and guest stub), /init, /modules/00.ko ..., /skeleton (root of a box without /usr), /image (what
 * lies above the root of an image). */
must_check int image_initramfs(const struct tier_host *h, const struct kernel_modules *m,
			       struct buf *out, struct err *e);

/* Packs folder `tree` into an erofs image, by mkfs.erofs in a process without privileges: what only
 * root can read is left out. fd: an empty file, which belongs to root again afterwards. */
must_check int image_pack(const char *tree, int fd, struct err *e);
/* The superblock of an erofs image: its size in bytes, which must not exceed that of the file. */
must_check int image_check(const void *head, size_t n, uint64_t file_bytes, struct err *e);

/* Identifies the contents of /usr: SHA-256 of the package database, in hexadecimal. */
must_check int image_usr_key(char out_hex[65], struct err *e);
/* Tools and guests end without a reason if the file system of `dir`, which is at `path`, is full: adds it. */
void image_explain_full(int dir, const char *path, struct err *e);
