/* record_file.h - the records of all boxes: a file of places, one box each.
 * Owns:         <run>/records, and which places of it are taken.
 * Does not own: what a record says (meta.h); the old way, a file for each (meta.h).
 *
 * A place is written whole, within a page, under a sum: whoever reads it after a kill -9 finds the
 * record that was, the one that is, or sees that it is neither. The first eight bytes are 0 in a
 * free one. Nothing is synced, for after a crash of the host there are no boxes. */
#pragma once
#include "keeper/box_record.h"
#include <stdint.h>

#define RECORD_FILE_MOST 65536u /* more than a keeper has id ranges */
#define RECORD_FILE_PLACE 2048u /* bytes of a place; the first is the file's own */
#define RECORD_FILE_VERSION 1u  /* another one whenever a place or struct box_record is another */

struct record_file { /* the loop's; makers use the descriptor only */
	int fd;
	int old_boot; /* what is in it is of another boot of the host: nobody lives */
	uint64_t boot;
	uint64_t taken[RECORD_FILE_MOST / 64];
	uint32_t free_from; /* all below are taken */
};

/* A file of another version is refused while it speaks of boxes that may live. */
must_check int record_file_open(struct record_file *r, int run, uint64_t boot, struct err *e);
/* Marks every place that is not free as taken and tells it; m is NULL where nobody can say what was
 * there. What each() drops is free again. */
typedef void record_file_found(uint32_t place, const struct box_record *m, void *arg);
must_check int record_file_each(struct record_file *r, record_file_found *each, void *arg,
				struct err *e);
/* After that: it is this boot's from here on, and no longer than it must be. */
must_check int record_file_begin(struct record_file *r, struct err *e);

void record_file_end(struct record_file *r,
		     int run); /* removes the file, if no box is left in it */

/* Nothing is written yet. */
must_check int record_file_take(struct record_file *r, uint32_t *out_place, struct err *e);
void record_file_drop(struct record_file *r, uint32_t place);

/* One write. By anybody, each in places of their own. */
must_check int record_file_write(int fd, uint32_t place, const struct box_record *m, struct err *e);

/* The box's deadline, at the end of its place, where keepers that know none do not look. It holds for the box
 * that it names: one that had the place before has left its own. */
must_check int record_file_write_deadline(int fd, uint32_t place, const char *id,
					  const struct wire_then *d, struct err *e);
void record_file_read_deadline(int fd, uint32_t place, const char *id,
			       struct wire_then *out); /* or none */
