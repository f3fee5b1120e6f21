/* layer_upper.h - copies the writable layer of a box, as the content of an image layer.
 *
 * For the privileged sealer. Everything is untrusted: the descriptor that init returns, and every
 * name, link, owner, attribute and size in the folder, which programs of the box may change at any
 * time. No link is followed, no other file system is entered, nothing is opened that could block,
 * and all bytes are counted. */
#pragma once
#include "base/err.h"
#include "keeper/layer_tree.h"
#include <stdint.h>

struct layer_upper {
	uint32_t uid_base; /* host id of the box's root */
	uint64_t bytes_most, files_most;
};

/* 0: a folder of the box with this first id, on a disk as boxes have them. */
must_check int layer_upper_check(int fd, uint32_t uid_base, struct err *e);
/* Ends all programs of the box and returns the folder. conn: to init of the box, blocking. */
must_check int layer_upper_open(int conn, const struct layer_upper *u, struct err *e);
/* to: an empty folder. Owners become ids inside the box. Left out: sockets, and what is below mount
 * points of Atoll, and empty folders that every box has. */
must_check int layer_upper_copy(int from, int to, const struct layer_upper *u, struct err *e);
