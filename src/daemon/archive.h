/* archive.h - a backup as one tar file: members with their SHA-256 in a manifest, which is the last member.
 * An archive that was cut has no manifest. Holes of a file are not stored (GNU sparse format 1.0, which tar reads).
 * Owns: what it knows of the archive; the descriptors are the caller's.
 *
 *   writer:  archive_add() ... archive_finish()
 *   reader:  archive_verify() reads everything and compares it with the manifest; then archive_extract() */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

enum { ARCHIVE_FORMAT = 1, ARCHIVE_NAME = 90, ARCHIVE_MANIFEST_MAX = 16 << 20 };
#define ARCHIVE_MANIFEST "manifest.json"

struct archive_writer {
	int fd;
	json_t *files; /* {"path", "bytes", "sha256"}: for the manifest */
	uint64_t bytes;
};

/* The content of a file as it is now, up to its present size. The name has at most ARCHIVE_NAME bytes. */
must_check int archive_add(struct archive_writer *w, const char *name, int from, struct err *e);
/* Adds the manifest with the list of files to `take_about`, and ends the archive. Does not sync. */
must_check int archive_finish(struct archive_writer *w, json_t *take_about, struct err *e);
/* The extended header of a file with holes. For the reader, which accepts no other. */
void archive_pax_text(struct buf *out, const char *name, uint64_t size);
void archive_writer_fini(struct archive_writer *w);

/* Reads the whole archive from its beginning. *out: the manifest, owned by the caller. ERR_INVALID: not such an
 * archive, cut, or changed; the message names the member. */
must_check int archive_verify(int fd, json_t **out, struct err *e);
/* 1: a name that a backup may have: no "..", nothing but letters, digits and ._-/ */
int archive_name_valid(const char *name);
/* Calls open() for each member but the manifest: a descriptor to write to, which is closed after fsync(), or -1. */
must_check int archive_extract(int fd, int (*open)(void *ctx, const char *name, struct err *e),
			       void *ctx, struct err *e);
