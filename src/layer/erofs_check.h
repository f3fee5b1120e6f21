/* erofs_check.h - checks a finished EROFS image before the kernel mounts it.
 *
 * The writer of an image reads untrusted folders and may have been taken over. This code accepts an image
 * only if every byte that the kernel's parser uses is one that erofs_write.c can write (erofs.h): every
 * offset, count, type, name, order, attribute and owner. It also rejects loops, folders with two
 * names, overlapping content and inodes without a name. It allocates in proportion to the number of
 * inodes and follows no pointer of the image before it was checked. */
#pragma once
#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

struct erofs_sum {
	uint64_t inodes, folders, deleted;
	uint64_t names;         /* without "." and ".." */
	uint64_t content_bytes; /* of files */
};

/* image: the whole file. most: names that it may have; more is an error. */
must_check int erofs_check(const uint8_t *image, size_t len, uint64_t most, struct erofs_sum *out,
			   struct err *e);
/* Only the superblock and the size: rejects an image that is cut off. */
must_check int erofs_check_size(const uint8_t *first_block, size_t n, uint64_t file_bytes,
				struct err *e);
