/* store.c - see store.h. */
#include "store/store.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "store/schema.h"
#include "store/sql.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { REWRITE_PAGES = 16384 }; /* 64 MiB */

/* Created here and not by SQLite, which would let other users read it. A file made by root, for
 * a daemon that is not root, belongs to the daemon; SQLite gives its WAL to the same owner. */
static int make_file(const char *dir, const char *path, struct err *e)
{
	struct stat st;
	auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		/* The file exists: it is not opened again, for closing it would drop the locks
		 * that another connection of this process has on it. */
		return errno == EEXIST ? 0 : err_sys(e, "create %s", path);
	if (geteuid() == 0 && (stat(dir, &st) < 0 || fchown(fd, st.st_uid, st.st_gid) < 0)) {
		err_sys(e, "give %s to the owner of its folder", path);
		unlink(path);
		return -1;
	}
	return 0;
}

/* Another process is writing. SQLite's own handler retries every 100 ms in the end, and a
 * process that writes without pauses would hold the lock each time; a retry every millisecond
 * finds the gap. */
static int wait_turn(void *user, int tries)
{
	struct timespec nap = { .tv_nsec = tries < 20 ? 100000 : 1000000 };
	struct store *s = user;
	uint64_t now = now_ns();

	if (tries == 0)
		s->waiting_since_ns = now;
	if (s->open_until_ns ? now >= s->open_until_ns
			     : now - s->waiting_since_ns > STORE_BUSY_MS * UINT64_C(1000000))
		return 0;
	nanosleep(&nap, NULL);
	return 1;
}

/* Two processes that open a new file at once both turn WAL on. One of them holds a read lock then and
 * fails with SQLITE_BUSY without a call of the busy handler, so the switch is retried here. */
static int use_wal(struct store *s, struct err *e)
{
	static const struct timespec pause = { .tv_nsec = 5000000 };
	sqlite3 *db = s->db;
	sqlite3_stmt *stmt = NULL;
	int wal = 0, rc = SQLITE_BUSY;

	/* Takes effect on an empty file only, and turning WAL on writes the first page. */
	sqlite3_exec(db, "PRAGMA auto_vacuum = INCREMENTAL", NULL, NULL, NULL);
	for (int tries = 0; (rc & 0xff) == SQLITE_BUSY; tries++) {
		if (tries && now_ns() >= s->open_until_ns)
			break;
		if (tries)
			nanosleep(&pause, NULL);
		rc = sqlite3_prepare_v2(db, "PRAGMA journal_mode = WAL", -1, &stmt, NULL);
		if (rc == SQLITE_OK)
			rc = sqlite3_step(stmt);
		if (rc == SQLITE_ROW)
			wal = strcmp((const char *)sqlite3_column_text(stmt, 0), "wal") == 0;
		sqlite3_finalize(stmt);
		stmt = NULL;
	}
	if (rc != SQLITE_ROW)
		return sql_fail(db, rc, e);
	if (!wal) {
		errno = ENOTSUP;
		return err_sys(e, "write-ahead log on this filesystem");
	}
	return 0;
}

static int store_configure(sqlite3 *db, struct err *e)
{
	/* A text in double quotes is a name, and no statement writes into the schema tables. */
	sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	if (sqlite3_exec(db,
			 "PRAGMA synchronous = NORMAL;"
			 "PRAGMA foreign_keys = ON;"
			 "PRAGMA journal_size_limit = 67108864;"
			 "PRAGMA temp_store = MEMORY",
			 NULL, NULL, NULL) != SQLITE_OK)
		return sql_fail(db, sqlite3_extended_errcode(db), e);
	return 0;
}

/* Pages of removed rows can be returned to the filesystem only from a file that tracks the
 * references to each page (auto_vacuum). A new file has this; a file of an older version is
 * rewritten once, unless it is so large that the daemon's start would be delayed: there, free
 * pages are only used again. */
static int track_pages(sqlite3 *db, struct err *e)
{
	static const char rewrite[] = "PRAGMA auto_vacuum = INCREMENTAL; VACUUM";
	struct err why;
	int mode, pages;

	if (schema_number(db, "PRAGMA auto_vacuum", &mode, e) < 0 ||
	    schema_number(db, "PRAGMA page_count", &pages, e) < 0)
		return -1;
	/* A full disk or another writer prevent it, but not the start: the next one tries again. */
	if (mode == 0 && pages <= REWRITE_PAGES &&
	    sqlite3_exec(db, rewrite, NULL, NULL, NULL) != SQLITE_OK) {
		sql_fail(db, sqlite3_extended_errcode(db), &why);
		log_warn(
			"the database was not rewritten: pages of deleted rows are used again, but not "
			"returned to the file system until the next start",
			LOG_E(&why));
	}
	return 0;
}

static int store_start_checkpoints(struct store *s, const char *path, struct err *e)
{
	uint64_t now = now_ns(), until = s->open_until_ns;

	return wal_copier_start(&s->wal_copier, s->db, path,
				until > now ? (unsigned)((until - now) / 1000000) : 0, e);
}

static int open_file(struct store *s, const char *path, struct err *e)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
	int rc = sqlite3_open_v2(path, &s->db, flags, NULL);

	if (rc != SQLITE_OK)
		return sql_fail(s->db, rc, e);
	sqlite3_busy_handler(s->db, wait_turn, s);
	if (sqlite3_db_readonly(s->db, "main")) {
		errno = EACCES; /* SQLite opens a file that cannot be written read-only */
		return err_sys(e, "open for writing");
	}
	/* The file is checked before anything in it is changed. */
	if (schema_accept(s->db, schema_newest, e) < 0 || use_wal(s, e) < 0 ||
	    store_configure(s->db, e) < 0 ||
	    schema_migrate(s->db, schema_steps, schema_newest, e) < 0 || track_pages(s->db, e) < 0)
		return -1;
	s->schema = schema_newest;
	return store_start_checkpoints(s, path, e);
}

int store_open(struct store **out, const char *dir, struct err *e)
{
	return store_open_within(out, dir, STORE_OPEN_MS, e);
}

int store_open_within(struct store **out, const char *dir, unsigned timeout_ms, struct err *e)
{
	char path[PATH_MAX];
	struct store *s;

	if (snprintf(path, sizeof(path), "%s/atoll.db", dir) >= (int)sizeof(path))
		return err_set(e, ERR_INVALID, "the name of the state folder is too long");
	if (make_file(dir, path, e) < 0)
		return -1;
	/* Counts of SQLite's memory, which nothing reads, would take a lock for each allocation. */
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	s = calloc(1, sizeof(*s));
	if (!s)
		abort();
	s->open_until_ns = now_ns() + timeout_ms * UINT64_C(1000000);
	if (open_file(s, path, e) < 0) {
		store_close(s);
		return err_in(e, "%.100s", path);
	}
	s->open_until_ns = 0;
	*out = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	while (s->depth)
		store_rollback(s);
	for (unsigned i = 0; i < SQL_CACHE; i++)
		sqlite3_finalize(s->cache[i]);
	/* The connection of the thread is closed first: closing the last connection copies the
	 * rest of the WAL and removes it. */
	wal_copier_stop(&s->wal_copier);
	sqlite3_close(s->db);
	free(s);
}

int store_schema(const struct store *s)
{
	return s->schema;
}

int store_check(struct store *s, struct err *e)
{
	auto_sql struct sql q = sql(s, "PRAGMA integrity_check(1)");
	char said[160];

	if (sql_one(&q, "answer of", "integrity_check", e) < 0)
		return -1;
	sql_get_text(&q, said, sizeof(said));
	if (strcmp(said, "ok") == 0)
		return 0;
	err_set(e, ERR_SYS, "database: %s", said);
	e->sys = EIO;
	return -1;
}

/* Groups ---- */

static int store_say(struct store *s, const char *text, struct err *e)
{
	auto_sql struct sql q = sql(s, text);

	return sql_run(&q, e);
}

int store_begin(struct store *s, struct err *e)
{
	if (s->doom.kind != ERR_NONE) {
		*e = s->doom;
		return -1;
	}
	/* Immediate: a group that began with a read could find, at its first write, that another
	 * process has written since, and SQLite cannot wait in that case. */
	if (store_say(s, s->depth ? "SAVEPOINT inner_one" : "BEGIN IMMEDIATE", e) < 0)
		return -1;
	s->depth++;
	return 0;
}

int store_rollback(struct store *s)
{
	struct err e;

	if (!s->depth)
		return -1;
	s->depth--;
	if (sqlite3_get_autocommit(s->db)) /* SQLite was faster: the disk is full */
		;
	else if (s->depth == 0)
		(void)!store_say(s, "ROLLBACK",
				 &e); /* in memory; there is nothing to fail, nor to do */
	else if (store_say(s, "ROLLBACK TO inner_one", &e) == 0)
		(void)!store_say(s, "RELEASE inner_one", &e);
	if (s->depth == 0)
		s->doom = (struct err){ 0 };
	return -1;
}

int store_sync(struct store *s, struct err *e)
{
	return wal_copier_sync(&s->wal_copier, e);
}

int store_commit(struct store *s, struct err *e)
{
	if (s->doom.kind != ERR_NONE) {
		*e = s->doom;
		return store_rollback(s);
	}
	if (store_say(s, s->depth > 1 ? "RELEASE inner_one" : "COMMIT", e) < 0)
		return store_rollback(s); /* a COMMIT that failed leaves the transaction open */
	s->depth--;
	return 0;
}

int store_join(struct store *s, struct err *e)
{
	if (s->depth && s->doom.kind == ERR_NONE)
		return 0;
	return store_begin(s, e) < 0 ? -1 : 1;
}

int store_leave(struct store *s, int began, int rc, struct err *e)
{
	if (began)
		return rc < 0 ? store_rollback(s) : store_commit(s, e);
	if (rc == 0 && s->doom.kind != ERR_NONE) {
		*e = s->doom;
		return -1;
	}
	return rc;
}

void store_doom(struct store *s, const struct err *e)
{
	if (s->depth && s->doom.kind == ERR_NONE)
		s->doom = *e;
}
