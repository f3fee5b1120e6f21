/* bring.h - `run --out DIR`: files that a program created or changed, copied from its box to a
 * folder here.
 * Owns: the list of paths and the descriptor of the folder. Only regular files below the box's
 * home are copied, to the same path below DIR. The program chooses names and contents, so nothing
 * is written outside DIR, through a link, or beyond the size of the box's disk. */
#pragma once
#include "client/box_handle.h"
#include "record/changes.h"

struct bring {
	int folder; /* -1: none is wanted */
	char **paths;
	unsigned *modes;
	unsigned npaths, skipped;
	uint64_t files, bytes;
};

/* Creates the folder if it is missing. path NULL: nothing is copied out. */
must_check int bring_open(struct bring *b, const char *path, struct err *e);
/* Makes changes_after() collect the files to be copied out. */
void bring_watch(struct bring *b, struct changes *c);
/* After changes_after(), when no program of the box runs. */
must_check int bring_fetch(struct bring *b, struct box_handle *box, struct err *e);
void bring_fini(struct bring *b);
