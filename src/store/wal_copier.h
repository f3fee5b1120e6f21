/* wal_copier.h - a thread that copies the WAL into the database, so that no commit waits for a
 * disk, and that waits for the disk where a caller must know that its commits survive a power failure.
 * Owns: its thread and its own connection.
 * Checkpoints are passive: no writer waits for them, except when the WAL has more than FLOOD
 * pages because there was never a moment without a writer. A large WAL is truncated at the next
 * quiet moment. */
#pragma once
#include "base/err.h"
#include <limits.h>
#include <pthread.h>

struct sqlite3;

enum { WAL_COPIER_SYNCS = 64 };

struct wal_copier {
	struct sqlite3 *db; /* the thread's */
	char wal[PATH_MAX]; /* path of the WAL */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* under the lock: */
	int started, stopping;
	int dirty;      /* there was a commit since the last one */
	unsigned pages; /* in the WAL, after that commit */
	unsigned done;  /* pages already copied; more than the WAL has: the WAL was restarted */
	int syncs[WAL_COPIER_SYNCS]; /* pipes of callers that wait for the disk */
	unsigned nsyncs;
};

/* Watches the commits of db, which the caller owns; path is that of its file. Waits up to
 * timeout_ms for the locks of other processes. */
must_check int wal_copier_start(struct wal_copier *c, struct sqlite3 *db, const char *path,
				unsigned timeout_ms, struct err *e);
/* A pipe from which one byte is read when all earlier commits survive a power failure: 0, or an errno. Without a thread, or
 * with many callers, the caller itself waits for the disk. */
must_check int wal_copier_sync(struct wal_copier *c, struct err *e);
void wal_copier_stop(struct wal_copier *c); /* fine on a zeroed one */
