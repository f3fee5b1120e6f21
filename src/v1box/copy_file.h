/* copy_file.h - the form in which a snapshot travels between nodes, and in an object store:
 *
 *   definition as one line of JSON | file | SHA-256 of the file, 64 digits
 *
 * The definition is that of a box with on_loss restart (fleet/definition.h), or of a snapshot (snapshot_source.h).
 * Owns: the file while it is read or written; the row and the file of a copy are the store's and the folder's. */
#pragma once
#include "api/api.h"
#include "base/sha256.h"

enum {
	COPY_PIECE = 64 << 10,
	COPY_DEFINITION = 4 << 20, /* bytes of a definition, at most */
	COPY_DIGITS = 2 * SHA256_BYTES,
};

struct copy_source { /* zeroed: closed */
	int fd;
	struct buf head;
	size_t head_at;
	struct sha256 sum, all; /* of the file, and of everything */
	char digits[COPY_DIGITS + 1];
	size_t digits_at;
	int file_ended;
	uint64_t length; /* of everything */
};
/* team NULL: the definition of its box; else that of the snapshot, which is this team's. ERR_NOT_FOUND. */
must_check int copy_source_open(struct copy_source *s, struct api *a, const char *team,
				const char *id, struct err *e);
/* Of all bytes, after the last one. */
void copy_source_sha256(struct copy_source *s, char out_hex[COPY_DIGITS + 1]);
/* 0: the end. -1: errno. */
ssize_t copy_source_read(struct copy_source *s, char *piece, size_t room);
void copy_source_close(struct copy_source *s);

struct copy_receiver { /* zeroed: closed */
	struct api *api;
	char id[ID_MAX + 1], part[ID_MAX + 8];
	int fd;
	int has_head;
	struct buf head;
	struct sha256 sum, all;
	char last
		[COPY_DIGITS]; /* bytes at the end so far: the digest, when all bytes have arrived */
	size_t nlast;
	uint64_t bytes;
	struct err trouble;
};
/* length: of everything; UINT64_MAX: not known. ERR_CONFLICT: this node has this copy. ERR_LIMIT: it arrives at the moment,
 * or the disk is full. */
must_check int copy_receiver_begin(struct copy_receiver *x, struct api *a, const char *id,
				   uint64_t length, struct err *e);
/* After an error the bytes are ignored, and copy_receiver_keep() fails. */
void copy_receiver_add(struct copy_receiver *x, const char *bytes, size_t n);
/* sha256: that all bytes must have, hexadecimal; NULL: not known. ERR_INVALID: they are damaged. */
must_check int copy_receiver_keep(struct copy_receiver *x, const char *sha256, struct err *e);
void copy_receiver_close(struct copy_receiver *x); /* removes what was not kept */

/* The file and the row of a copy. */
must_check int copy_drop(struct api *a, const char *id, struct err *e);
