/* spool.h - the three files of a batch, in <state>/batches.
 * Owns: their descriptors.
 *
 *   ID.in    items as received, one per line
 *   ID.out   results, one line of JSON each: exactly what clients get
 *   ID.idx   of each result: where its line ends, its item, its status
 *
 * A result counts when its row of the index is written, before a client gets it. The rest of a
 * result that does not count, left by a crash, is cut off when the files are opened again. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <stdint.h>

struct spool_row {
	uint64_t end; /* offset in ID.out after its line */
	uint32_t item;
	uint16_t verdict, cause;
};

struct spool {
	int in, out, idx;
	uint64_t in_bytes, out_bytes;
	uint32_t results;
};

/* Opens the folder, created if missing; returns a descriptor. */
must_check int spool_folder(const char *state, struct err *e);
must_check int spool_make(struct spool *s, int folder, const char *id, struct err *e);
must_check int spool_open(struct spool *s, int folder, const char *id, struct err *e);
void spool_fini(struct spool *s); /* the files are kept; allowed on a zeroed one whose fds are -1 */
void spool_remove(int folder, const char *id);

must_check int spool_add(struct spool *s, const void *bytes, size_t n, struct err *e);
/* Writes all of it, or nothing that readers see. */
must_check int spool_result(struct spool *s, const char *line, size_t n, struct spool_row row,
			    struct err *e);
/* Reads the rows from `first` on, up to max; returns how many. */
must_check int spool_rows(const struct spool *s, uint32_t first, struct spool_row *out,
			  unsigned max, struct err *e);
/* The position of the result with this number, from 1; the number after the last: the end. */
must_check int spool_offset(const struct spool *s, uint32_t seq, uint64_t *out, struct err *e);
/* Reads up to n bytes of results, or of items; returns how many. */
must_check int spool_read(const struct spool *s, uint64_t at, void *to, size_t n, struct err *e);
must_check int spool_read_in(const struct spool *s, uint64_t at, void *to, size_t n, struct err *e);
