/* directory.h - which rows of this machine the directory of its cluster must get: boxes, runs, events, audit, usage.
 * Triggers record each change in its transaction, with a revision that only grows. They exist only on machines of a
 * cluster (store_directory_enable()); other machines pay nothing. A row that changes again before it was sent is
 * recorded once, with the newer revision. */
#pragma once
#include "store/store.h"

enum { STORE_DIRECTORY_ID = 400 };

struct store_directory_row {
	int64_t rev;
	char kind[8]; /* "box", "run", "event", "audit", "usage", "day" */
	char id[STORE_DIRECTORY_ID +
		1]; /* of a box or run; the number of an event; the key of a sum */
	char *row; /* JSON; NULL: a box or run, which the caller reads, or one that was deleted since */
};
struct store_directory_rows {
	struct store_directory_row *v;
	unsigned n;
};
void store_directory_rows_fini(struct store_directory_rows *l);

/* on 0: removes the triggers and what is recorded. The first time all rows that exist are recorded. Revisions continue
 * above the clock (us since 1970): a state folder that was restored from a backup does not repeat revisions. */
must_check int store_directory_enable(struct store *s, int on, int64_t now_us, struct err *e);
/* After that revision, the oldest first. */
must_check int store_directory_list(struct store *s, int64_t after, unsigned limit,
				    struct store_directory_rows *out, struct err *e);
/* The newest revision that the directory does not have; 0: it has all. */
must_check int store_directory_last(struct store *s, int64_t *out_rev, struct err *e);
/* The directory has all up to this revision. */
must_check int store_directory_kept(struct store *s, int64_t rev, struct err *e);
/* All rows of boxes again: another node may have taken them over meanwhile. */
must_check int store_directory_repeat_boxes(struct store *s, struct err *e);
