/* backup.c - see backup.h. */
#include "store/backup.h"
#include "store/schema.h"
#include "store/sql.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BACKUP_TRIES = 100, BACKUP_PAUSE_US = 50000 };

static int backup_open(const char *file, int flags, sqlite3 **out, struct err *e)
{
	int rc = sqlite3_open_v2(file, out, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
				 NULL);

	if (rc != SQLITE_OK)
		return sql_fail(*out, rc, e);
	sqlite3_busy_timeout(*out, STORE_BUSY_MS);
	return 0;
}

/* 0: a version that this program can read. */
static int backup_read_schema(sqlite3 *db, int *out_schema, struct err *e)
{
	return schema_accept(db, schema_newest, e) < 0
		       ? -1
		       : schema_number(db, "PRAGMA user_version", out_schema, e);
}

/* All pages in one step, hence in one read transaction. (VACUUM INTO cannot be used: on a connection that only reads,
 * SQLite copies row by row, and then it rejects tables with a generated column: "runs has 16 columns but 17 values".) */
static int backup_copy(sqlite3 *from, sqlite3 *to, struct err *e)
{
	sqlite3_backup *copy = sqlite3_backup_init(to, "main", from, "main");
	int rc = copy ? SQLITE_BUSY : sqlite3_extended_errcode(to);

	for (int tries = 0; copy && tries < BACKUP_TRIES; tries++) {
		rc = sqlite3_backup_step(copy, -1);
		if ((rc & 0xff) != SQLITE_BUSY && (rc & 0xff) != SQLITE_LOCKED)
			break;
		usleep(BACKUP_PAUSE_US);
	}
	if (copy)
		sqlite3_backup_finish(copy);
	return rc == SQLITE_DONE ? 0 : sql_fail(to, rc, e);
}

static int backup_write(sqlite3 *from, const char *to, struct err *e)
{
	mode_t before = umask(077); /* SQLite creates the file */
	sqlite3 *db = NULL;
	int rc = backup_open(to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &db, e);

	umask(before);
	if (rc == 0)
		rc = backup_copy(from, db, e);
	if (sqlite3_close(db) != SQLITE_OK && rc == 0)
		rc = err_set(e, ERR_SYS, "close %.150s", to);
	return rc;
}

int store_backup(const char *dir, const char *to, int *out_schema, struct err *e)
{
	char file[PATH_MAX];
	sqlite3 *db = NULL;
	int rc;

	if (snprintf(file, sizeof(file), "%s/atoll.db", dir) >= (int)sizeof(file))
		return err_set(e, ERR_INVALID, "the name of the state folder is too long");
	rc = backup_open(file, SQLITE_OPEN_READONLY, &db, e);
	if (rc == 0)
		rc = backup_read_schema(db, out_schema, e);
	if (rc == 0)
		rc = backup_write(db, to, e);
	sqlite3_close(db);
	return rc < 0 ? err_in(e, "%.100s", file) : 0;
}

static int backup_check(sqlite3 *db, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &stmt, NULL), good = 0;

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		good = !strcmp((const char *)sqlite3_column_text(stmt, 0), "ok");
	if (rc != SQLITE_ROW)
		sql_fail(db, rc, e);
	else if (!good)
		err_set(e, ERR_INVALID, "damaged: %.120s",
			(const char *)sqlite3_column_text(stmt, 0));
	sqlite3_finalize(stmt);
	return good ? 0 : -1;
}

int store_examine(const char *file, int *out_schema, struct err *e)
{
	sqlite3 *db = NULL;
	int rc = backup_open(file, SQLITE_OPEN_READWRITE, &db,
			     e); /* its mode needs files beside it */

	if (rc == 0)
		rc = backup_read_schema(db, out_schema, e);
	if (rc == 0 && *out_schema == 0)
		rc = err_set(e, ERR_INVALID, "it is empty");
	if (rc == 0)
		rc = backup_check(db, e);
	sqlite3_close(db);
	return rc < 0 ? err_in(e, "database") : 0;
}

static int describe_number(sqlite3 *db, const char *query, const char *name, struct buf *out,
			   struct err *e)
{
	int n;

	if (schema_number(db, query, &n, e) < 0)
		return -1;
	buf_printf(out, "%s: %d\n", name, n);
	return 0;
}

static int describe_tables(sqlite3 *db, struct buf *out, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(
		db,
		"SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
		" ORDER BY name",
		-1, &stmt, NULL);

	while (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(stmt, 0);
		char *query = sqlite3_mprintf("SELECT count(*) FROM \"%w\"", name),
		     *label = sqlite3_mprintf("rows of %s", name);

		rc = describe_number(db, query, label, out, e) < 0 ? SQLITE_ERROR : SQLITE_OK;
		sqlite3_free(query);
		sqlite3_free(label);
	}
	sqlite3_finalize(stmt);
	return rc == SQLITE_OK ? 0 : -1;
}

int store_describe(const char *dir, struct buf *out, struct err *e)
{
	char file[PATH_MAX];
	sqlite3 *db = NULL;
	int rc;

	if (snprintf(file, sizeof(file), "%s/atoll.db", dir) >= (int)sizeof(file))
		return err_set(e, ERR_INVALID, "the name of the state folder is too long");
	rc = backup_open(file, SQLITE_OPEN_READONLY, &db, e);
	buf_printf(out, "newest schema of this version: %d\nSQLite %s\n", schema_newest,
		   sqlite3_libversion());
	if (rc == 0)
		rc = describe_number(db, "PRAGMA user_version", "schema", out, e) < 0 ||
				     describe_number(db, "PRAGMA page_size", "page size", out, e) <
					     0 ||
				     describe_number(db, "PRAGMA page_count", "pages", out, e) <
					     0 ||
				     describe_number(db, "PRAGMA freelist_count", "free pages", out,
						     e) < 0
			     ? -1
			     : describe_tables(db, out, e);
	sqlite3_close(db);
	return rc < 0 ? err_in(e, "%.100s", file) : 0;
}
