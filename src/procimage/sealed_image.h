/* sealed_image.h - a process image in a file: encrypted, and authenticated from the first to the last byte.
 *
 *   head                   version, architecture, checkpoint, team, id of the key, wrapped key of this file
 *   frame 0 ... frame n    {bytes, last} encrypted bytes, tag: AES-256-GCM with the key of the file, the number of the
 *                          frame as nonce, the numbers in front authenticated, too
 *
 * The decrypted frames are one stream of sections: {kind, index, bytes} and as many bytes. What the sections mean is decided
 * by their writer. A frame is checked before a byte of it is used, so a reader sees only what was written; whether all of
 * it is there is known when sealed_image_next() has returned 0.
 * Owns:         the key of the file and a frame, until _fini().
 * Does not own: the descriptor. */
#pragma once
#include "base/err.h"
#include "base/id.h"
#include <stddef.h>
#include <stdint.h>

enum {
	SEALED_VERSION = 1,
	SEALED_KEY = 32,
	SEALED_KEY_ID = 8, /* bytes of a hash of the key */
	SEALED_FRAME = 1 << 20,
	SEALED_NONCE = 12,
	SEALED_TAG = 16,
	SEALED_TEAM = 16, /* bytes of a hash of its name */
	SEALED_KINDS = 16,
	SEALED_HEAD = 112, /* bytes; its tag follows */
};
#define SEALED_MOST (UINT64_C(16) << 30) /* bytes of a section */

struct sealed_image_about { /* whose image it is; another one is rejected */
	const char *checkpoint, *team;
};

struct sealed_image_section {
	uint32_t kind, index;
	uint64_t bytes;
};

struct sealed_image {
	int fd;
	void *cipher;
	uint8_t *frame; /* bytes of the stream that were not written or not read yet */
	uint32_t at, have;
	uint64_t number; /* of the next frame */
	uint64_t left;   /* bytes of the section */
	uint64_t bytes;  /* of the file up to now */
	int last;        /* read: there is no further frame */
};

/* Writes the head. */
must_check int sealed_image_create(struct sealed_image *f, int fd,
				   const struct sealed_image_about *a,
				   const uint8_t key[SEALED_KEY], struct err *e);
/* Then exactly x->bytes bytes must be added. */
must_check int sealed_image_begin(struct sealed_image *f, const struct sealed_image_section *x,
				  struct err *e);
must_check int sealed_image_add(struct sealed_image *f, const void *bytes, size_t n, struct err *e);
/* Without it the file is truncated. */
must_check int sealed_image_end(struct sealed_image *f, struct err *e);

/* Reads the head, from the present offset of fd. */
must_check int sealed_image_open(struct sealed_image *f, int fd, const struct sealed_image_about *a,
				 const uint8_t key[SEALED_KEY], struct err *e);
/* 1: the next section, after the rest of this one; 0: the file is complete. */
must_check int sealed_image_next(struct sealed_image *f, struct sealed_image_section *out,
				 struct err *e);
/* n bytes of the section; more than it has are an error. */
must_check int sealed_image_read(struct sealed_image *f, void *to, size_t n, struct err *e);

void sealed_image_fini(struct sealed_image *f); /* fine on a zeroed one */
/* As text, for messages. */
void sealed_image_key_id(const uint8_t key[SEALED_KEY], char out[2 * SEALED_KEY_ID + 1]);
