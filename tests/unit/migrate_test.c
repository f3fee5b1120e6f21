/* migrate_test.c - a file of every earlier schema, with rows in every table, is migrated and loses nothing. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "store/schema.h"
#include "store_dir.h"
#include "tap.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The statement that created a table; to be freed. */
static char *statement_of(sqlite3 *db, const char *table)
{
	sqlite3_stmt *stmt;
	char *text = NULL;

	if (sqlite3_prepare_v2(db, "SELECT sql FROM sqlite_schema WHERE name = ?", -1, &stmt,
			       NULL) != SQLITE_OK)
		abort();
	sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
	if (sqlite3_step(stmt) == SQLITE_ROW)
		text = strdup((const char *)sqlite3_column_text(stmt, 0));
	sqlite3_finalize(stmt);
	return text ? text : strdup("");
}

/* The first word that a constraint of the column accepts, or JSON of the type that it names; "": it has none. */
static void constrained_value(const char *statement, const char *column, char out[64])
{
	char pattern[100];
	const char *at;

	out[0] = 0;
	for (unsigned i = 0; i < 2 && !*out; i++) {
		snprintf(pattern, sizeof(pattern), i ? "(%s = '" : "(%s IN ('", column);
		at = strstr(statement, pattern);
		if (at)
			snprintf(out, 64, "'%.*s'", (int)strcspn(at + strlen(pattern), "'"),
				 at + strlen(pattern));
	}
	snprintf(pattern, sizeof(pattern), "json_type(%s) = 'array'", column);
	if (strstr(statement, pattern))
		snprintf(out, 64, "'[1]'");
	snprintf(pattern, sizeof(pattern), "json_valid(%s)", column);
	if (!*out && strstr(statement, pattern))
		snprintf(out, 64, "'{\"o\":1}'");
}

/* All names of a query's first column, separated by blanks, in one text. */
static void names_of(sqlite3 *db, const char *query, struct buf *out)
{
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v2(db, query, -1, &stmt, NULL) != SQLITE_OK)
		abort();
	while (sqlite3_step(stmt) == SQLITE_ROW)
		buf_printf(out, "%s ", (const char *)sqlite3_column_text(stmt, 0));
	sqlite3_finalize(stmt);
}

/* usage_days existed between two commits only, in no released version; its rows are not carried over. */
#define TABLES                                                                                     \
	"SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"          \
	" AND name <> 'usage_days' AND name NOT LIKE 'pipeline\\_memory\\_%' ESCAPE '\\' ORDER BY name"

/* The columns that a row is made of: no generated ones. */
static void columns_of(sqlite3 *db, const char *table, struct buf *out)
{
	char query[300];

	snprintf(query, sizeof(query), "SELECT name FROM pragma_table_xinfo('%s') WHERE hidden = 0",
		 table);
	names_of(db, query, out);
}

/* 'I' INTEGER, 'R' REAL, 'B' BLOB, 'T' TEXT */
static char type_of(sqlite3 *db, const char *table, const char *column)
{
	const char *type = NULL;

	sqlite3_table_column_metadata(db, NULL, table, column, &type, NULL, NULL, NULL, NULL);
	return type && *type ? *type : 'T';
}

/* A row with a value of its own in every column. All ids of a row have the same letter, so that references fit. */
static int insert_row(sqlite3 *db, const char *table, unsigned row)
{
	auto_buf struct buf names = { 0 }, columns = { 0 }, values = { 0 }, text = { 0 };
	auto_free char *statement = statement_of(db, table);
	char *rest = NULL, id = (char)('a' + row), value[64];
	int n = 0, rc;

	if (!strcmp(table, "audit_line")) /* the step that makes it fills it */
		return 0;
	columns_of(db, table, &names);
	for (char *c = strtok_r(names.p, " ", &rest); c; c = strtok_r(NULL, " ", &rest), n++) {
		constrained_value(statement, c, value);
		if (!strcmp(c, "one") && row)
			return 0;
		buf_printf(&columns, "%s\"%s\"", n ? ", " : "", c);
		buf_puts(&values, n ? ", " : "");
		if (*value)
			buf_puts(&values, value);
		else if (!strcmp(c, "one"))
			buf_puts(&values, "1");
		else if (type_of(db, table, c) == 'I')
			buf_printf(&values, "%u", 1000 * (row + 1) + (unsigned)n);
		else if (type_of(db, table, c) == 'R')
			buf_printf(&values, "%u.5", row);
		else if (type_of(db, table, c) == 'B')
			buf_printf(&values, "x'%02x%02x'", row + 1, (unsigned)n);
		else
			buf_printf(&values, "'%c%c%c%c%c%c%c%c%c%c%c%c'", id, id, id, id, id, id,
				   id, id, id, id, id, id);
	}
	buf_printf(&text, "INSERT INTO \"%s\" (%s) VALUES (%s)", table, buf_str(&columns),
		   buf_str(&values));
	rc = sqlite3_exec(db, buf_str(&text), NULL, NULL, NULL);
	if (rc != SQLITE_OK)
		printf("# %s: %s\n", sqlite3_errmsg(db), buf_str(&text));
	return rc;
}

/* The rows of a table, these columns of it, as text. */
static int dump_rows(sqlite3 *db, const char *table, const char *columns, struct buf *out)
{
	auto_buf struct buf query = { 0 }, names = { 0 };
	sqlite3_stmt *stmt;
	char *rest = NULL;
	int n = 0;

	buf_puts(&names, columns);
	buf_puts(&query, "SELECT ");
	for (char *c = strtok_r(names.p, " ", &rest); c; c = strtok_r(NULL, " ", &rest), n++)
		buf_printf(&query, "%s'%s=' || quote(\"%s\")", n ? " || ' ' || " : "", c, c);
	buf_printf(&query, " AS row FROM \"%s\" ORDER BY row", table);
	if (sqlite3_prepare_v2(db, buf_str(&query), -1, &stmt, NULL) != SQLITE_OK) {
		printf("# %s: %s\n", sqlite3_errmsg(db), buf_str(&query));
		return -1;
	}
	while (sqlite3_step(stmt) == SQLITE_ROW)
		buf_printf(out, "%s: %s\n", table, (const char *)sqlite3_column_text(stmt, 0));
	sqlite3_finalize(stmt);
	return 0;
}

/* tables: names as of before; columns: one text per table. NULL columns: those of this file, and they are stored. */
static int dump_all(sqlite3 *db, const char *tables, char **columns, struct buf *out)
{
	auto_buf struct buf names = { 0 };
	char *rest = NULL;
	unsigned i = 0;

	buf_puts(&names, tables);
	for (char *t = strtok_r(names.p, " ", &rest); t; t = strtok_r(NULL, " ", &rest), i++) {
		if (!columns[i]) {
			struct buf list = { 0 };

			columns_of(db, t, &list);
			columns[i] = buf_steal(&list);
		}
		if (dump_rows(db, t, columns[i], out) < 0)
			return -1;
	}
	return 0;
}

static int number_of(sqlite3 *db, const char *query)
{
	int n = -1;

	return schema_number(db, query, &n, &err) < 0 ? -1 : n;
}

static sqlite3 *open_file(const char *dir)
{
	char path[200];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/atoll.db", dir);
	if (sqlite3_open(path, &db) != SQLITE_OK)
		abort();
	return db;
}

/* The step that shares rows of teams in a cluster writes a note about each of them, as its triggers do for rows that are
 * added later. The rows of this test have other kinds. */
#define FORGET_NOTES                                                                               \
	"DELETE FROM account_changes WHERE kind IN ('network', 'policy', 'webhook', 'secret')"

static void migrate_from(int version, const char *dir)
{
	auto_buf struct buf tables = { 0 }, before = { 0 }, after = { 0 }, defects = { 0 };
	char *columns[100] = { 0 }, *rest = NULL;
	sqlite3 *db = open_file(dir);
	auto_store struct store *s = NULL;

	CHECK_OK(schema_migrate(db, schema_steps, version, &err));
	names_of(db, TABLES, &tables);
	auto_free char *copy = strdup(tables.p);
	for (char *t = strtok_r(copy, " ", &rest); t; t = strtok_r(NULL, " ", &rest))
		for (unsigned row = 0; row < 2; row++)
			CHECK_INT(insert_row(db, t, row), SQLITE_OK);
	names_of(db, "PRAGMA foreign_key_check", &defects);
	CHECK_STR(buf_str(&defects), "");
	/* Old schemas do not have the table. */
	(void)sqlite3_exec(db, FORGET_NOTES, NULL, NULL, NULL);
	CHECK_INT(dump_all(db, tables.p, columns, &before), 0);
	CHECK(before.len > 100);
	sqlite3_close(db);
	CHECK_OK(store_open(&s, dir, &err));
	CHECK_OK(store_check(s, &err));
	store_close(s);
	s = NULL;
	db = open_file(dir);
	CHECK_INT(number_of(db, "PRAGMA user_version"), schema_newest);
	CHECK_INT(number_of(db, "PRAGMA auto_vacuum"), 2);
	CHECK_INT(sqlite3_exec(db, FORGET_NOTES, NULL, NULL, NULL), SQLITE_OK);
	CHECK_INT(dump_all(db, tables.p, columns, &after), 0);
	CHECK_STR(buf_str(&after), buf_str(&before));
	names_of(db, "PRAGMA foreign_key_check", &defects);
	CHECK_STR(buf_str(&defects), "");
	sqlite3_close(db);
	for (unsigned i = 0; i < ARRAY_LEN(columns); i++)
		free(columns[i]);
}

/* Every step syncs: in memory that takes no time. */
__attribute__((constructor)) static void use_memory(void)
{
	if (access("/dev/shm", W_OK) == 0)
		setenv("TMPDIR", "/dev/shm", 1);
}

TEST(rows_of_every_table_survive_the_migration_from_every_schema)
{
	for (int version = 1; version <= schema_newest && tap_now == TAP_OK; version++) {
		auto_dir char dir[128];

		dir_make(dir);
		migrate_from(version, dir);
		if (tap_now != TAP_OK)
			printf("# from schema %d\n", version);
	}
}

/* Opening migrates, and a process that is killed between two steps leaves a file that the next one completes. */
TEST(a_migration_that_stopped_at_any_step_is_completed)
{
	for (int version = 1; version < schema_newest; version++) {
		auto_dir char dir[128];
		auto_store struct store *s = NULL;
		sqlite3 *db;

		dir_make(dir);
		db = open_file(dir);
		CHECK_OK(schema_migrate(db, schema_steps, version, &err));
		CHECK_INT(number_of(db, "PRAGMA user_version"), version);
		CHECK_OK(schema_migrate(db, schema_steps, version + 1, &err));
		sqlite3_close(db);
		CHECK_OK(store_open(&s, dir, &err));
		CHECK_INT(store_schema(s), schema_newest);
	}
}
