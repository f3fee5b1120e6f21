/* store.h - durable rows: one SQLite file, `<dir>/atoll.db`.
 * Owns:         its connections, the prepared statements, the checkpoint thread.
 * Does not own: what the rows mean. Topics have headers of their own: keys.h, teams.h, boxes.h,
 *               runs.h, audit.h, events.h, volumes.h, idempotency.h, batches.h.
 *
 * All calls come from one thread. A call that has returned 0 is committed (or part of the group
 * that store_begin() opened): it survives kill -9 of all processes. It was written, not synced:
 * a power cut may lose the last seconds, always whole transactions from the end, but nothing before
 * a store_sync(). A thread of the store syncs: it copies the WAL into the database in the background.
 *
 * Other processes may open the same file at the same time (`atoll key new` while the daemon
 * runs): writers wait for each other up to STORE_BUSY_MS, readers never wait, and opening waits
 * for the locks of other processes up to STORE_OPEN_MS.
 *
 * Failures. ERR_NOT_FOUND: no such row. ERR_CONFLICT: the name is taken. ERR_INVALID: text that
 * is not UTF-8, or metadata, env and volumes of a box that are not JSON. ERR_SYS with sys
 * ENOSPC: the disk is full; EBUSY: another process holds the file; EIO: the disk, or the file,
 * is broken. A write that failed has changed nothing, reads still work, and the next write may
 * succeed.
 *
 * Text is UTF-8 without NUL, is returned byte for byte, and the caller has bounded its size. ""
 * and NULL are the same to the store; it returns "". Times are nanoseconds since 1970; 0 is
 * never. */
#pragma once
#include "base/err.h"
#include "base/id.h"
#include <stdint.h>

enum {
	STORE_NAME = 64,            /* bytes of a name: of a box, team, key, volume */
	STORE_TEMPLATE = 129,       /* of a template's: name:tag */
	STORE_SESSION = 128,        /* of a session key */
	STORE_WORD = 32,            /* of a cause, an action, a kind */
	STORE_PAGE = 100,           /* rows of a page by default ... */
	STORE_PAGE_MAX = 1000,      /* ... and at most; `more` is set when another page exists */
	STORE_PAGE_BYTES = 1 << 20, /* a page ends with the row with which its texts exceed this */
	STORE_BUSY_MS = 5000,       /* a write waits for another process that long ... */
	STORE_OPEN_MS = 30000,      /* ... and opening the file takes at most this long */
};
#define STORE_FOREVER UINT64_MAX /* a duration without an end */

struct store;

/* dir exists. Creates the file (0600, owned by the owner of dir), or migrates an older one; a
 * file that a newer atoll made, or that is not ours, is rejected and left unchanged. */
must_check int store_open(struct store **out, const char *dir, struct err *e);
/* The same with another deadline than STORE_OPEN_MS. */
must_check int store_open_within(struct store **out, const char *dir, unsigned timeout_ms,
				 struct err *e);
void store_close(struct store *s); /* rolls back an open group; allowed on NULL */

/* Several writes, all or nothing. Pairs nest: an inner rollback undoes only the inner ones.
 * After an ERR_SYS inside a group all further writes of it fail, and store_commit() returns that
 * error.
 *
 * 	if (store_begin(s, e) < 0)
 * 		return -1;
 * 	if (store_box_insert(s, &box, e) < 0 || store_event_add(s, &created, e) < 0)
 * 		return store_rollback(s);	// always -1; e stays as it was
 * 	return store_commit(s, e);		// on failure: rolled back */
must_check int store_begin(struct store *s, struct err *e);
must_check int store_commit(struct store *s, struct err *e);
/* A descriptor that is readable when everything committed before survives a power failure: one byte, 0 or an errno. */
must_check int store_sync(struct store *s, struct err *e);
int store_rollback(struct store *s); /* returns -1 */
/* The same for writes that fail for ERR_SYS only: in an open group they need no savepoint, because all of the group is
 * rolled back then. store_leave() gets what store_join() returned, and -1 as rc if a write failed. */
must_check int store_join(struct store *s, struct err *e);
must_check int store_leave(struct store *s, int began, int rc, struct err *e);
/* From here on the open group can only be rolled back; nothing without a group. */
void store_doom(struct store *s, const struct err *e);

/* Failures of the disk or the file (ERR_SYS) in this process so far, all stores together. */
uint64_t store_errors(void);

/* Reads every page and returns the defects of the file. Slow; for `atoll doctor`. */
must_check int store_check(struct store *s, struct err *e);
int store_schema(const struct store *s); /* the version of the open file */

/* Where a page of a list newest first ended: the position of the last row. Zero: from the start. */
struct store_cursor {
	int64_t ns;
	char id[ID_MAX + 1];
};
#define STORE_CURSOR_TEXT 40
/* Converts to the `next` of a list and back; a text that the store did not make is ERR_INVALID. */
void store_cursor_text(const struct store_cursor *c, char out[STORE_CURSOR_TEXT]);
must_check int store_cursor_parse(const char *text, struct store_cursor *out, struct err *e);
