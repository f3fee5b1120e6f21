/* sql.h - SQL statements, prepared once and used many times. For the files of this folder only.
 *
 * 	auto_sql struct sql q = sql(s, "SELECT name, boxes FROM teams WHERE name > ?");
 *
 * 	sql_text(&q, after);
 * 	while ((rc = sql_row(&q, e)) > 0) {
 * 		sql_get_text(&q, team.name, sizeof(team.name));
 * 		team.boxes = sql_get_u64(&q);
 * 	}
 *
 * Values are bound, and columns read, from left to right. The first sql_row() returns an error
 * that occurred before it. A statement is reset at the end of the scope, so a function must not
 * return with rows unread that it still points into, and must not use one text twice at the same
 * time. */
#pragma once
#include "base/buf.h"
#include "store/wal_copier.h"
#include "store/store.h"
#include <sqlite3.h>
#include <stddef.h>

enum { SQL_CACHE = 256 }; /* the texts of all topics, and the filters that are really used */

struct store {
	sqlite3 *db;
	sqlite3_stmt *cache[SQL_CACHE]; /* by hash of the text */
	struct wal_copier wal_copier;
	int schema;
	uint64_t waiting_since_ns; /* for another writer */
	uint64_t open_until_ns;    /* while store_open() runs: its deadline; else 0 */
	uint64_t history_bytes;    /* store_history_added() */
	int depth;                 /* of store_begin() */
	struct err doom; /* why the open group can only be rolled back; ERR_NONE: it can be
			  * committed */
};

struct sql {
	struct store *store;
	sqlite3_stmt *stmt; /* NULL: could not be prepared */
	int bound, got;     /* values and columns so far */
	int cached;
	int rc;          /* the first thing that went wrong, SQLite's extended code */
	const char *bad; /* or a bound value that is not allowed */
};

struct sql sql(struct store *s, const char *text);
void sql_fini(struct sql *q);
#define auto_sql __attribute__((cleanup(sql_fini)))

void sql_text(struct sql *q, const char *text); /* NULL is "" */
void sql_json(struct sql *q, const char *text, const char *if_null);
void sql_i64(struct sql *q, int64_t n);
void sql_u64(struct sql *q, uint64_t n); /* the same 64 bits: STORE_FOREVER is kept as -1 */
void sql_blob(struct sql *q, const void *bytes, size_t n);

/* 1: a row; 0: no more; -1. */
must_check int sql_row(struct sql *q, struct err *e);
/* For statements without rows. */
must_check int sql_run(struct sql *q, struct err *e);
/* The same, and it must have changed a row: else ERR_NOT_FOUND, "no <what> '<which>'". */
must_check int sql_run_one(struct sql *q, const char *what, const char *which, struct err *e);
/* The only row, or ERR_NOT_FOUND as above. */
must_check int sql_one(struct sql *q, const char *what, const char *which, struct err *e);
unsigned sql_changes(const struct sql *q); /* rows that the last sql_run() met */

int64_t sql_get_i64(struct sql *q);
uint64_t sql_get_u64(struct sql *q);
void sql_get_text(struct sql *q, char *out, size_t size); /* cut to fit */
char *sql_get_dup(struct sql *q);
void *sql_get_blob(struct sql *q, size_t *out_n); /* a copy, followed by a NUL */

/* The error of SQLite as a struct err. */
int sql_fail(sqlite3 *db, int rc, struct err *e);

/* Lists ---- */

/* Optional conditions: "team = ?" and its value, joined with AND. */
struct sql_where {
	struct buf text; /* "SELECT ... WHERE 1" to begin with */
	struct sql_value {
		const char *text; /* NULL: n */
		int64_t n;
	} v[32];
	unsigned n;
};
void sql_where_text(struct sql_where *w, const char *condition, const char *value); /* NULL: not */
void sql_where_i64(struct sql_where *w, const char *condition, int64_t value);
void sql_where_after(struct sql_where *w, const char *ns, const struct store_cursor *after);
/* Adds the tail ("ORDER BY ...") and binds. */
struct sql sql_filtered(struct store *s, struct sql_where *w, const char *tail);
#define auto_where __attribute__((cleanup(sql_where_fini)))
void sql_where_fini(struct sql_where *w);

unsigned sql_limit(unsigned asked); /* the largest number of rows of a page */
#define SQL_ALL UINT32_MAX

struct sql_rows {
	void *v;
	unsigned n;
	int more;
};
/* Reads all rows, up to limit, and up to STORE_PAGE_BYTES unless limit is beyond STORE_PAGE_MAX;
 * the query asks for one row more (LIMIT), to know whether another page exists. On failure
 * nothing is left: fini (or NULL) is called for each. */
must_check int sql_list(struct sql *q, unsigned limit, size_t size,
			void (*read)(struct sql *q, void *row), void (*fini)(void *row),
			struct sql_rows *out, struct err *e);
