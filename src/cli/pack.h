/* pack.h - the files of a folder as a tar.gz, for a build: files, folders and symbolic links. Nothing outside of the
 * folder is read, because no link is followed.
 * Owns: the descriptor of the folder, the list of paths, the file that is read. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/ignore.h"
#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

enum { PACK_ENTRIES = 1000000, PACK_DEPTH = 128, PACK_HASH = 64 };

struct pack_entry {
	char *path; /* from the folder down */
	mode_t mode;
	uint64_t bytes; /* of a file */
	int64_t mtime;
	char *what; /* for the manifest: mode and hash of the content, or where a link leads */
};

struct pack_writer;
struct pack {
	int root;
	struct ignore ignore;
	char ignore_file[32]; /* "": there is none */
	struct pack_entry *v;
	unsigned n, room;
	uint64_t bytes, files;
	uint64_t skipped; /* sockets, devices and the like */
	uint64_t read;    /* bytes of files so far */
	struct pack_writer *writer;
};

must_check int pack_open(struct pack *p, const char *folder, struct err *e);
/* The text of a file; 0: there is none. */
must_check int pack_text(struct pack *p, const char *path, size_t most, struct buf *out,
			 struct err *e);
/* Lists the files without the ignored ones. */
must_check int pack_scan(struct pack *p, struct err *e);
/* "node_modules 1.2 GiB, data 300 MiB": the largest parts. */
void pack_largest(const struct pack *p, struct buf *out);
/* The SHA-256 of paths, modes and contents. Reads all files. */
must_check int pack_hash(struct pack *p, char out[PACK_HASH + 1], struct err *e);
/* After pack_hash(): {path: mode and hash of the content}. NULL: too many files for one request, or a name is not UTF-8. */
json_t *pack_manifest(const struct pack *p);
/* The next bytes of the tar.gz; 0: the end. */
ssize_t pack_read(void *pack, void *out, size_t room, struct err *e);
void pack_fini(struct pack *p); /* fine on a zeroed one */
