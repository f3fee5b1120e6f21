/* record_file.h - the records of all boxes: a file of slots ("places"), one per box.
 * Owns:         <run>/records, and which slots of it are used.
 * Does not own: the content of a record (box_record.h); the old format with one file per box
 *               (box_record.h).
 *
 * A slot is written with one write, within a page, with a checksum: a reader after a kill -9 finds
 * the old record, the new one, or an invalid checksum. The first eight bytes of a free slot are 0.
 * Nothing is synced, because after a crash of the host there are no boxes. */
#pragma once
#include "keeper/box_record.h"
#include <stdint.h>

#define RECORD_FILE_MOST 65536u /* more than a keeper has id ranges */
#define RECORD_FILE_PLACE 2048u /* bytes of a slot; the first one is the file header */
#define RECORD_FILE_VERSION 1u  /* changes with the format of a slot or struct box_record */

struct record_file { /* of the loop's thread; builder threads use the descriptor only */
	int fd;
	int old_boot; /* the records are of another boot of the host: no box runs */
	uint64_t boot;
	uint64_t taken[RECORD_FILE_MOST / 64];
	uint32_t free_from; /* all below are used */
};

/* A file of another version is rejected if it has boxes that may still run. */
must_check int record_file_open(struct record_file *r, int run, uint64_t boot, struct err *e);
/* Marks every slot that is not free as used and calls each(); m is NULL if the slot is not
 * readable. Slots that each() drops are free again. */
typedef void record_file_found(uint32_t place, const struct box_record *m, void *arg);
must_check int record_file_each(struct record_file *r, record_file_found *each, void *arg,
				struct err *e);
/* Called after that: marks the file as one of this boot, and truncates it. */
must_check int record_file_begin(struct record_file *r, struct err *e);

void record_file_end(struct record_file *r,
		     int run); /* removes the file, if no box is left in it */

/* Nothing is written yet. */
must_check int record_file_take(struct record_file *r, uint32_t *out_place, struct err *e);
void record_file_drop(struct record_file *r, uint32_t place);

/* One write. Any thread may write, each to slots of its own. */
must_check int record_file_write(int fd, uint32_t place, const struct box_record *m, struct err *e);

/* The deadline of the box, at the end of its slot, which older keepers do not read. It is valid
 * only for the box that it names: an earlier box may have left its deadline in the slot. */
must_check int record_file_write_deadline(int fd, uint32_t place, const char *id,
					  const struct wire_then *d, struct err *e);
void record_file_read_deadline(int fd, uint32_t place, const char *id,
			       struct wire_then *out); /* or none */
