/* changes.h - files that a run changed: compares the upper layer of the box before and after.
 * Owns: both lists. Folders are left out: they change whenever something in them does. */
#pragma once
#include "base/err.h"
#include "client/files.h"
#include <jansson.h>

enum { CHANGES_LISTED = 1000, CHANGES_SEEN = 50000 };
#define CHANGES_HASHED (UINT64_C(64) << 20) /* bytes, all files together */

struct changes_seen;
struct changes {
	struct changes_seen *before;
	unsigned nbefore;
	json_t *list;  /* [{path, kind, type, size, sha256}] */
	int truncated; /* there were more */
	/* Or NULL: called for every file that was added or modified, also for those beyond the list. */
	void (*each)(void *ctx, const struct wire_entry *entry, const char *path);
	void *ctx;
};

/* Existing files are not changes: call it after files were put into the box. */
must_check int changes_before(struct changes *c, struct box_handle *b, struct err *e);
must_check int changes_after(struct changes *c, struct box_handle *b, struct err *e);
void changes_fini(struct changes *c);

/* A path or an argument as JSON: bytes that are no UTF-8 become U+FFFD. */
json_t *json_text(const char *foreign);
