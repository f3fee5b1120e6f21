/* sql.c - see sql.h. */
#include "store/sql.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Statements ---- */

static sqlite3_stmt *sql_prepare(struct store *s, const char *text, unsigned flags, int *rc)
{
	sqlite3_stmt *stmt = NULL;

	*rc = sqlite3_prepare_v3(s->db, text, -1, flags, &stmt, NULL);
	return *rc == SQLITE_OK ? stmt : NULL;
}

/* The slot of this statement, or a free one. NULL: all slots near it are taken, and none may be
 * evicted, for it may be in use. */
static sqlite3_stmt **sql_slot(struct store *s, const char *text)
{
	uint32_t hash = id_hash(text);

	for (unsigned i = 0; i < 16; i++) {
		sqlite3_stmt **at = &s->cache[(hash + i) % SQL_CACHE];

		if (!*at || strcmp(sqlite3_sql(*at), text) == 0)
			return at;
	}
	return NULL;
}

struct sql sql(struct store *s, const char *text)
{
	struct sql q = { .store = s };
	sqlite3_stmt **at = sql_slot(s, text);

	if (!at) {
		q.stmt = sql_prepare(s, text, 0, &q.rc);
		return q;
	}
	if (!*at)
		*at = sql_prepare(s, text, SQLITE_PREPARE_PERSISTENT, &q.rc);
	q.stmt = *at;
	q.cached = 1;
	return q;
}

void sql_fini(struct sql *q)
{
	if (!q->cached) {
		sqlite3_finalize(q->stmt);
	} else if (q->stmt) {
		sqlite3_reset(q->stmt);
		sqlite3_clear_bindings(
			q->stmt); /* they point into memory that the caller frees next */
	}
	*q = (struct sql){ 0 };
}

/* Values ---- */

static void sql_bound(struct sql *q, int rc)
{
	if (rc != SQLITE_OK && q->rc == SQLITE_OK)
		q->rc = rc;
}

void sql_text(struct sql *q, const char *text)
{
	if (!text)
		text = "";
	/* SQLite would store it, but a JSON answer could never contain it. */
	if (!utf8_valid(text, strlen(text)))
		q->bad = "text that is not UTF-8";
	else if (q->stmt)
		sql_bound(q, sqlite3_bind_text(q->stmt, q->bound + 1, text, -1, SQLITE_STATIC));
	q->bound++;
}

void sql_json(struct sql *q, const char *text, const char *if_null)
{
	sql_text(q, text && *text ? text : if_null);
}

void sql_i64(struct sql *q, int64_t n)
{
	if (q->stmt)
		sql_bound(q, sqlite3_bind_int64(q->stmt, q->bound + 1, n));
	q->bound++;
}

void sql_u64(struct sql *q, uint64_t n)
{
	sql_i64(q, (int64_t)n);
}

void sql_blob(struct sql *q, const void *bytes, size_t n)
{
	if (q->stmt) /* NULL bytes would be NULL, not the empty blob */
		sql_bound(q, sqlite3_bind_blob64(q->stmt, q->bound + 1, n ? bytes : "", n,
						 SQLITE_STATIC));
	q->bound++;
}

int64_t sql_get_i64(struct sql *q)
{
	return sqlite3_column_int64(q->stmt, q->got++);
}

uint64_t sql_get_u64(struct sql *q)
{
	return (uint64_t)sql_get_i64(q);
}

void sql_get_text(struct sql *q, char *out, size_t size)
{
	const char *text = (const char *)sqlite3_column_text(q->stmt, q->got++);
	size_t n = text ? strnlen(text, size - 1) : 0;

	if (n)
		memcpy(out, text, n);
	out[n] = 0;
}

void *sql_get_blob(struct sql *q, size_t *out_n)
{
	const void *bytes = sqlite3_column_blob(q->stmt, q->got);
	size_t n = (size_t)sqlite3_column_bytes(q->stmt, q->got++);
	struct buf copy = { 0 };

	buf_add(&copy, bytes, n);
	*out_n = n;
	return buf_steal(&copy);
}

char *sql_get_dup(struct sql *q)
{
	size_t n;

	return sql_get_blob(q, &n);
}

/* Steps ---- */

/* SQLite reports a full disk as such or as a failed write, depending on the system call that
 * failed. */
static int disk_errno(sqlite3 *db, int rc)
{
	int sys = sqlite3_system_errno(db);

	if ((rc & 0xff) == SQLITE_FULL || sys == ENOSPC || sys == EDQUOT)
		return ENOSPC;
	return EIO;
}

static enum err_kind kind_of(int rc)
{
	switch (rc) {
	case SQLITE_CONSTRAINT_UNIQUE:
	case SQLITE_CONSTRAINT_PRIMARYKEY:
	case SQLITE_CONSTRAINT_FOREIGNKEY: /* the caller knows which row is missing */
		return ERR_CONFLICT;
	case SQLITE_CONSTRAINT_CHECK:
	case SQLITE_CONSTRAINT_NOTNULL:
	case SQLITE_CONSTRAINT_DATATYPE:
		return ERR_INVALID;
	case SQLITE_CONSTRAINT_TRIGGER:
		return ERR_DENIED;
	}
	return (rc & 0xff) == SQLITE_TOOBIG ? ERR_LIMIT : ERR_SYS;
}

static int errno_of(sqlite3 *db, int rc)
{
	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return EBUSY;
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return EROFS;
	case SQLITE_CANTOPEN:
		return sqlite3_system_errno(db) ? sqlite3_system_errno(db) : EACCES;
	}
	return disk_errno(db, rc);
}

static atomic_uint_least64_t failures; /* also changed by the checkpoint thread */

uint64_t store_errors(void)
{
	return atomic_load(&failures);
}

int sql_fail(sqlite3 *db, int rc, struct err *e)
{
	enum err_kind kind = kind_of(rc);
	int sys = kind == ERR_SYS ? errno_of(db, rc) : 0;

	if (rc == SQLITE_NOMEM || rc == SQLITE_IOERR_NOMEM)
		abort(); /* as everywhere */
	err_set(e, kind, "database: %s", db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
	e->sys = sys;
	if (kind == ERR_SYS)
		atomic_fetch_add(&failures, 1);
	return -1;
}

static int step_failed(struct sql *q, struct err *e)
{
	struct store *s = q->store;

	if (q->bad)
		return err_set(e, ERR_INVALID, "%s", q->bad);
	sql_fail(s->db, q->rc, e);
	/* SQLite may have rolled back the whole group, not this statement alone: the following
	 * statements would be committed one by one. */
	if (s->depth && s->doom.kind == ERR_NONE &&
	    (e->kind == ERR_SYS || sqlite3_get_autocommit(s->db)))
		s->doom = *e;
	return -1;
}

int sql_row(struct sql *q, struct err *e)
{
	struct store *s = q->store;
	int rc;

	if (q->bad || !q->stmt || q->rc != SQLITE_OK)
		return step_failed(q, e);
	if (s->doom.kind != ERR_NONE && !sqlite3_stmt_readonly(q->stmt)) {
		*e = s->doom;
		return -1;
	}
	rc = sqlite3_step(q->stmt);
	q->got = 0;
	if (rc == SQLITE_ROW)
		return 1;
	if (rc == SQLITE_DONE)
		return 0;
	q->rc = rc;
	return step_failed(q, e);
}

int sql_run(struct sql *q, struct err *e)
{
	return sql_row(q, e) < 0 ? -1 : 0;
}

unsigned sql_changes(const struct sql *q)
{
	return (unsigned)sqlite3_changes(q->store->db);
}

static int sql_none(const char *what, const char *which, struct err *e)
{
	return err_set(e, ERR_NOT_FOUND, "no %s '%.64s'", what, which);
}

int sql_run_one(struct sql *q, const char *what, const char *which, struct err *e)
{
	if (sql_run(q, e) < 0)
		return -1;
	return sql_changes(q) ? 0 : sql_none(what, which, e);
}

int sql_one(struct sql *q, const char *what, const char *which, struct err *e)
{
	int rc = sql_row(q, e);

	return rc < 0 ? -1 : rc ? 0 : sql_none(what, which, e);
}
