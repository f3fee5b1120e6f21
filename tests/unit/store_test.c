/* store_test.c - the database file: access, migration, transactions. Rows are in store_*_test.c. */
#include "base/buf.h"
#include "store/audit.h"
#include "store/history.h"
#include "store/idempotency.h"
#include "store/schema.h"
#include "store/sql.h"
#include "store_rows.h"
#include "forked.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include "store_v1.h"

static void path_of(char out[160], const char *dir, const char *name)
{
	snprintf(out, 160, "%s/%s", dir, name);
}

/* A plain SQLite connection to the file, without the store; SQL in, its output out. */
static int plain(const char *dir, const char *text)
{
	char path[160];
	sqlite3 *db = NULL;
	int rc;

	path_of(path, dir, "atoll.db");
	rc = sqlite3_open(path, &db);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, text, NULL, NULL, NULL);
	if (rc != SQLITE_OK)
		printf("# %s\n", sqlite3_errmsg(db));
	sqlite3_close(db);
	return rc;
}

static void slurp(const char *dir, const char *name, struct buf *out)
{
	char path[160];
	auto_fd int fd = -1;
	ssize_t n;

	path_of(path, dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && (n = read(fd, buf_space(out, 65536), 65536)) > 0)
		buf_grew(out, (size_t)n);
}

static int spill(const char *dir, const char *name, const void *bytes, size_t n)
{
	char path[160];
	auto_fd int fd = -1;

	path_of(path, dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return fd >= 0 && write(fd, bytes, n) == (ssize_t)n ? 0 : -1;
}

/* Words of version 0.1 ---- */

TEST(rows_with_state_words_of_version_0_1_are_read)
{
	STORE(s, dir);
	struct store_box b = rows_box(), out = { 0 };
	struct store_events events = { 0 };

	CHECK_OK(store_box_insert(s, &b, &err));
	CHECK_INT(plain(dir, "UPDATE boxes SET state = 'kept'"), SQLITE_OK);
	CHECK_OK(store_box_get(s, b.id, &out, &err));
	CHECK_STR(store_box_state_name(out.state), "stopped");
	store_box_fini(&out);
	CHECK_INT(plain(dir, "UPDATE boxes SET state = 'gone'"), SQLITE_OK);
	CHECK_OK(store_box_get(s, b.id, &out, &err));
	CHECK_STR(store_box_state_name(out.state), "deleted");
	store_box_fini(&out);
	CHECK_INT(plain(dir, "INSERT INTO events (at_ns, team, box, type, data)"
			     " VALUES (1, 'blue', 'aaaaaaaaaaaa', 'box.kept', '{}')"),
		  SQLITE_OK);
	CHECK_OK(store_event_list(s, 0, "blue", NULL, 0, &events, &err));
	CHECK_INT(events.n, 1);
	CHECK_STR(events.v[0].type, "box.stopped");
	store_events_fini(&events);
}

/* A server of version 0.1 reads the same file while it is replaced. */
TEST(states_are_stored_with_the_words_of_the_schema)
{
	STORE(s, dir);
	struct store_box b = rows_box();

	b.state = STORE_BOX_STOPPED;
	CHECK_OK(store_box_insert(s, &b, &err));
	CHECK_INT(plain(dir, "CREATE TEMP TABLE t (n CHECK (n = 1));"
			     " INSERT INTO t SELECT count(*) FROM boxes WHERE state = 'kept'"),
		  SQLITE_OK);
}

/* Opening ---- */

TEST(a_new_database_is_private_and_has_the_newest_version)
{
	struct stat st;
	char path[160];

	STORE(s, dir);
	path_of(path, dir, "atoll.db");
	CHECK_INT(stat(path, &st), 0);
	CHECK_INT(st.st_mode & 0777, 0600);
	CHECK_INT(store_schema(s), schema_newest);
	CHECK_OK(store_check(s, &err));
}

TEST(rows_of_every_table_are_read_after_reopening)
{
	STORE(s, dir);
	CHECK_OK(rows_fill(s));
	rows_check(s);
	store_close(s);
	s = NULL;
	CHECK_OK(store_open(&s, dir, &err));
	rows_check(s);
}

TEST(closing_leaves_one_file_with_all_rows)
{
	struct stat st;
	char path[160];

	STORE(s, dir);
	CHECK_OK(rows_fill(s));
	store_close(s);
	s = NULL;
	path_of(path, dir, "atoll.db-wal");
	CHECK_INT(stat(path, &st), -1);
}

TEST(a_missing_folder_is_reported)
{
	auto_store struct store *s = NULL;

	CHECK_ERR(store_open(&s, "/nonexistent/state", &err), ERR_SYS);
	CHECK_INT(err.sys, ENOENT);
	CHECK(strstr(err.msg, "/nonexistent/state/atoll.db"));
}

TEST(an_overlong_folder_name_is_rejected)
{
	auto_store struct store *s = NULL;
	static char name[8000];

	memset(name, 'a', sizeof(name) - 1);
	CHECK_ERR(store_open(&s, name, &err), ERR_INVALID);
}

TEST(a_folder_instead_of_the_file_is_rejected)
{
	auto_dir char dir[128];
	auto_store struct store *s = NULL;
	char path[160];

	dir_make(dir);
	path_of(path, dir, "atoll.db");
	CHECK_INT(mkdir(path, 0700), 0);
	err = (struct err){ 0 };
	CHECK(store_open(&s, dir, &err) < 0 && err.kind == ERR_SYS);
	rmdir(path);
}

TEST(a_file_that_is_no_database_is_rejected_and_not_changed)
{
	auto_dir char dir[128];
	auto_store struct store *s = NULL;
	auto_buf struct buf now = { 0 };
	char garbage[10000];

	dir_make(dir);
	memset(garbage, 'x', sizeof(garbage));
	CHECK_INT(spill(dir, "atoll.db", garbage, sizeof(garbage)), 0);
	CHECK_ERR(store_open(&s, dir, &err), ERR_SYS);
	CHECK_INT(err.sys, EIO);
	CHECK(strstr(err.msg, "not a database"));
	slurp(dir, "atoll.db", &now);
	CHECK(now.len == sizeof(garbage) && memcmp(now.p, garbage, now.len) == 0);
}

TEST(a_truncated_file_is_refused)
{
	static const off_t parts[] = { 100, 4096, 5000, 40960 };

	for (unsigned i = 0; i < ARRAY_LEN(parts); i++) {
		char path[160];

		STORE(s, dir);
		CHECK_OK(rows_fill(s));
		store_close(s);
		s = NULL;
		path_of(path, dir, "atoll.db");
		CHECK_INT(truncate(path, parts[i]), 0);
		CHECK_ERR(store_open(&s, dir, &err), ERR_SYS);
		CHECK_INT(err.sys, EIO);
	}
}

TEST(a_damaged_page_is_found_by_the_check)
{
	char path[160], zeros[4096] = { 0 };
	auto_fd int fd = -1;

	STORE(s, dir);
	CHECK_OK(rows_fill(s));
	CHECK_OK(store_check(s, &err));
	store_close(s);
	s = NULL;
	path_of(path, dir, "atoll.db");
	fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK_INT(pwrite(fd, zeros, sizeof(zeros), 4096 * 3), 4096);
	CHECK_OK(store_open(&s, dir, &err));
	CHECK_ERR(store_check(s, &err), ERR_SYS);
	CHECK_INT(err.sys, EIO);
}

TEST(an_invalid_wal_loses_no_rows)
{
	char garbage[9000];

	STORE(s, dir);
	CHECK_OK(rows_fill(s));
	store_close(s);
	s = NULL;
	memset(garbage, 0x37, sizeof(garbage));
	CHECK_INT(spill(dir, "atoll.db-wal", garbage, sizeof(garbage)), 0);
	CHECK_OK(store_open(&s, dir, &err));
	rows_check(s);
}

TEST(the_database_of_another_program_is_refused)
{
	auto_dir char dir[128];
	auto_store struct store *s = NULL;

	dir_make(dir);
	CHECK_INT(plain(dir, "CREATE TABLE photos (name TEXT)"), SQLITE_OK);
	CHECK_ERR(store_open(&s, dir, &err), ERR_INVALID);
	CHECK(strstr(err.msg, "another program"));
}

TEST(a_database_of_a_newer_version_is_rejected_and_not_changed)
{
	auto_buf struct buf before = { 0 }, after = { 0 };
	char want[80], stamp[64];

	STORE(s, dir);
	store_close(s);
	s = NULL;
	snprintf(stamp, sizeof(stamp), "PRAGMA user_version = %d", schema_newest + 4);
	CHECK_INT(plain(dir, stamp), SQLITE_OK);
	slurp(dir, "atoll.db", &before);
	CHECK_ERR(store_open(&s, dir, &err), ERR_INVALID);
	snprintf(want, sizeof(want),
		 "written by a newer version: its schema is %d, this one supports %d",
		 schema_newest + 4, schema_newest);
	CHECK(strstr(err.msg, want));
	slurp(dir, "atoll.db", &after);
	CHECK(before.len == after.len && memcmp(before.p, after.p, after.len) == 0);
}

static void become_unprivileged(void)
{
	if (geteuid() == 0 &&
	    (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0))
		_exit(1);
}

TEST_FORKED(a_read_only_database_file_is_rejected)
{
	char path[160];

	STORE(s, dir);
	store_close(s);
	s = NULL;
	path_of(path, dir, "atoll.db");
	CHECK(chmod(path, 0444) == 0 && chmod(dir, 0777) == 0);
	become_unprivileged();
	CHECK_ERR(store_open(&s, dir, &err), ERR_SYS);
	CHECK_INT(err.sys, EACCES);
}

TEST_FORKED(an_unreadable_database_file_is_rejected)
{
	char path[160];

	STORE(s, dir);
	store_close(s);
	s = NULL;
	path_of(path, dir, "atoll.db");
	CHECK(chmod(path, 0) == 0 && chmod(dir, 0777) == 0);
	become_unprivileged();
	CHECK_ERR(store_open(&s, dir, &err), ERR_SYS);
	CHECK_INT(err.sys, EACCES);
}

TEST(a_file_made_by_root_belongs_to_the_owner_of_the_folder)
{
	auto_dir char dir[128];
	auto_store struct store *s = NULL;
	struct stat st;
	char path[160];

	if (geteuid() != 0)
		SKIP("only root can give files away");
	dir_make(dir);
	CHECK_INT(chown(dir, 65534, 65534), 0);
	CHECK_OK(store_open(&s, dir, &err));
	CHECK_OK(rows_fill(s));
	path_of(path, dir, "atoll.db-wal");
	CHECK_INT(stat(path, &st), 0);
	CHECK_INT(st.st_uid, 65534);
	path_of(path, dir, "atoll.db");
	CHECK_INT(stat(path, &st), 0);
	CHECK_INT(st.st_uid, 65534);
}

/* Versions ---- */

static const char *const history[] = {
	"CREATE TABLE a (x INTEGER); INSERT INTO a VALUES (1)",
	"ALTER TABLE a ADD COLUMN y INTEGER DEFAULT 2",
	"CREATE TABLE b AS SELECT x + y AS z FROM a; DROP TABLE a",
};

TEST(every_old_version_is_migrated_to_the_newest)
{
	for (int from = 0; from <= 3; from++) {
		sqlite3 *db;
		int n = 0;

		CHECK_INT(sqlite3_open(":memory:", &db), SQLITE_OK);
		CHECK_OK(schema_migrate(db, history, from, &err));
		CHECK_OK(schema_number(db, "PRAGMA user_version", &n, &err));
		CHECK_INT(n, from);
		CHECK_OK(schema_migrate(db, history, 3, &err));
		CHECK_OK(schema_number(db, "SELECT z FROM b", &n, &err));
		CHECK_INT(n, 3);
		CHECK_OK(schema_number(db, "PRAGMA user_version", &n, &err));
		CHECK_INT(n, 3);
		CHECK_ERR(schema_migrate(db, history, 2, &err) < 0 ? -1
								   : schema_accept(db, 2, &err),
			  ERR_INVALID);
		sqlite3_close(db);
	}
}

TEST(a_failed_migration_leaves_the_previous_version)
{
	static const char *const broken[] = {
		"CREATE TABLE a (x INTEGER); INSERT INTO a VALUES (1)",
		"UPDATE a SET x = 5; CREATE TABLE b (y); INSERT INTO nowhere VALUES (1)",
	};
	sqlite3 *db;
	int n = 0;

	CHECK_INT(sqlite3_open(":memory:", &db), SQLITE_OK);
	CHECK_ERR(schema_migrate(db, broken, 2, &err), ERR_SYS);
	CHECK(strstr(err.msg, "from schema 1 to 2") && strstr(err.msg, "nowhere"));
	CHECK_OK(schema_number(db, "PRAGMA user_version", &n, &err));
	CHECK_INT(n, 1);
	CHECK_OK(schema_number(db, "SELECT x FROM a", &n, &err));
	CHECK_INT(n, 1);
	CHECK_OK(schema_number(db, "SELECT count(*) FROM sqlite_schema", &n, &err));
	CHECK_INT(n, 1);
	sqlite3_close(db);
}

TEST(a_store_of_version_1_still_opens_with_all_its_rows)
{
	auto_dir char dir[128];
	auto_store struct store *s = NULL;

	dir_make(dir);
	CHECK_INT(plain(dir, store_v1), SQLITE_OK);
	CHECK_OK(store_open(&s, dir, &err));
	CHECK_INT(store_schema(s), schema_newest);
	rows_check(s);
	CHECK_OK(store_check(s, &err));
}

/* Do not change a released migration step: add another one. */
TEST(the_first_migration_creates_the_released_schema)
{
	static const char all[] =
		"SELECT group_concat(sql, x'0a') FROM"
		" (SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name)";
	struct buf text[2] = { { 0 }, { 0 } };

	for (unsigned i = 0; i < 2; i++) {
		sqlite3_stmt *stmt;
		sqlite3 *db;

		CHECK_INT(sqlite3_open(":memory:", &db), SQLITE_OK);
		if (i)
			CHECK_OK(schema_migrate(db, schema_steps, 1, &err));
		else
			CHECK_INT(sqlite3_exec(db, store_v1, NULL, NULL, NULL), SQLITE_OK);
		CHECK_INT(sqlite3_prepare_v2(db, all, -1, &stmt, NULL), SQLITE_OK);
		CHECK_INT(sqlite3_step(stmt), SQLITE_ROW);
		buf_puts(&text[i], (const char *)sqlite3_column_text(stmt, 0));
		sqlite3_finalize(stmt);
		sqlite3_close(db);
	}
	CHECK_STR(buf_str(&text[1]), buf_str(&text[0]));
	buf_fini(&text[0]);
	buf_fini(&text[1]);
}

/* Groups ---- */

static int has(struct store *s, unsigned n)
{
	struct store_box b;
	struct err e;

	if (store_box_get(s, id_of(n), &b, &e) < 0)
		return 0;
	store_box_fini(&b);
	return 1;
}

static int put(struct store *s, unsigned n)
{
	struct store_box b = box_of(n);

	return store_box_insert(s, &b, &err);
}

TEST(a_transaction_is_all_or_nothing)
{
	STORE(s, dir);
	CHECK_OK(store_begin(s, &err));
	CHECK_OK(put(s, 1));
	CHECK(has(s, 1));
	CHECK_INT(store_rollback(s), -1);
	CHECK(!has(s, 1));
	CHECK_OK(store_begin(s, &err));
	CHECK_OK(put(s, 1));
	CHECK_OK(put(s, 2));
	CHECK_OK(store_commit(s, &err));
	CHECK(has(s, 1) && has(s, 2));
}

TEST(an_inner_rollback_undoes_only_inner_changes)
{
	STORE(s, dir);
	CHECK_OK(store_begin(s, &err));
	CHECK_OK(put(s, 1));
	CHECK_OK(store_begin(s, &err));
	CHECK_OK(put(s, 2));
	CHECK_ERR(put(s, 1), ERR_CONFLICT);
	CHECK_INT(store_rollback(s), -1);
	CHECK_OK(store_begin(s, &err));
	CHECK_OK(put(s, 3));
	CHECK_OK(store_commit(s, &err));
	CHECK_OK(store_commit(s, &err));
	CHECK(has(s, 1) && !has(s, 2) && has(s, 3));
}

TEST(an_outer_rollback_undoes_committed_inner_changes)
{
	STORE(s, dir);
	CHECK_OK(store_begin(s, &err));
	CHECK_OK(store_begin(s, &err));
	CHECK_OK(put(s, 1));
	CHECK_OK(store_commit(s, &err));
	store_rollback(s);
	CHECK(!has(s, 1));
}

TEST(a_commit_without_a_begin_changes_nothing)
{
	STORE(s, dir);
	CHECK_INT(store_rollback(s), -1);
	err = (struct err){ 0 };
	CHECK(store_commit(s, &err) < 0 && err.kind != ERR_NONE);
	CHECK_OK(put(s, 1));
}

TEST(closing_rolls_back_an_open_transaction)
{
	STORE(s, dir);
	CHECK_OK(store_begin(s, &err));
	CHECK_OK(put(s, 1));
	store_close(s);
	s = NULL;
	CHECK_OK(store_open(&s, dir, &err));
	CHECK(!has(s, 1));
	store_close(NULL);
}

/* Text ---- */

TEST(text_that_is_not_utf8_is_refused)
{
	static const char *const bad[] = {
		"\x80",
		"\xc3",
		"\xc0\xaf",
		"\xe0\x80\x80",
		"\xed\xa0\x80",
		"\xf0\x80\x80\x80",
		"\xf4\x90\x80\x80",
		"\xf8\x88\x80\x80\x80",
		"\xff",
		"ok\xe2\x82",
	};

	STORE(s, dir);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		struct store_box b = box_of(i);

		snprintf(b.name, sizeof(b.name), "%s", bad[i]);
		CHECK_ERR(store_box_insert(s, &b, &err), ERR_INVALID);
		CHECK(!has(s, i));
		CHECK_ERR(store_box_by_name(s, "default", bad[i], &b, &err), ERR_INVALID);
	}
}

TEST(hostile_text_is_read_byte_for_byte)
{
	static const char *const texts[] = {
		"'",
		"\"",
		"';--",
		"%s%n",
		"\\",
		"\x01\x02\x7f",
		"\xef\xbf\xbf",
		"\xf4\x8f\xbf\xbf",
		"a\nb",
		"NULL",
		"?1",
		" ",
		"\xe2\x80\xae",
	};

	STORE(s, dir);
	for (unsigned i = 0; i < ARRAY_LEN(texts); i++) {
		struct store_box b = box_of(i);

		snprintf(b.name, sizeof(b.name), "%s", texts[i]);
		CHECK_OK(store_box_insert(s, &b, &err));
		CHECK_OK(store_box_by_name(s, "default", texts[i], &b, &err));
		CHECK_STR(b.name, texts[i]);
		CHECK_STR(b.id, id_of(i));
		store_box_fini(&b);
	}
}

TEST(a_cursor_is_parsed_from_its_text_and_other_text_is_rejected)
{
	static const char *const bad[] = {
		"",
		"-",
		"1",
		"1-",
		"-aaaaaaaaaaaa",
		"1-aaa",
		"x-aaaaaaaaaaaa",
		"1-AAAAAAAAAAAA",
		"99999999999999999999-aaaaaaaaaaaa",
		"9999999999999999999-aaaaaaaaaaaa",
		"-1-aaaaaaaaaaaa",
		"1-aaaaaaaaaaaaa",
		" 1-aaaaaaaaaaaa",
	};
	struct store_cursor c = { INT64_MAX, "abcdefghijkl" }, d;
	char text[STORE_CURSOR_TEXT];

	store_cursor_text(&c, text);
	CHECK_OK(store_cursor_parse(text, &d, &err));
	CHECK(d.ns == c.ns && strcmp(d.id, c.id) == 0);
	c = (struct store_cursor){ INT64_MAX, "aahabcdefghijkl" };
	store_cursor_text(&c, text);
	CHECK_OK(store_cursor_parse(text, &d, &err));
	CHECK(d.ns == c.ns && strcmp(d.id, c.id) == 0);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_ERR(store_cursor_parse(bad[i], &d, &err), ERR_INVALID);
}

TEST(more_statements_than_the_cache_holds_are_executed)
{
	STORE(s, dir);
	for (unsigned i = 0; i < SQL_CACHE * 3; i++) {
		char text[64];

		snprintf(text, sizeof(text), "SELECT %u", i);
		auto_sql struct sql q = sql(s, text);
		CHECK_INT(sql_row(&q, &err), 1);
		CHECK_INT(sql_get_i64(&q), i);
	}
	CHECK_OK(put(s, 1));
}

/* History ---- */

#define DAY_NS (24 * 3600 * INT64_C(1000000000))
enum { TEXT = 40000 };

static char *history_text(size_t n)
{
	char *text = malloc(n + 3);

	text[0] = text[n + 1] = '"';
	memset(text + 1, 'x', n);
	text[n + 2] = 0;
	return text;
}

/* A run, a box, an idempotency key and an audit row of one moment; the run has n bytes of
 * request. */
static int history_add(struct store *s, const char *team, unsigned n, int64_t at_ns, size_t bytes)
{
	struct store_run r = { .started_ns = at_ns, .ended_ns = at_ns + 1 };
	struct store_audit a = { .at_ns = at_ns, .action = "box.create", .result = "ok" };
	struct store_box b = box_of(n);
	auto_free char *text = history_text(bytes);
	uint8_t hash[SHA256_BYTES] = { 1 };
	struct store_idem i;

	snprintf(b.team, sizeof(b.team), "%s", team);
	snprintf(r.team, sizeof(r.team), "%s", team);
	snprintf(a.team, sizeof(a.team), "%s", team);
	snprintf(r.id, sizeof(r.id), "%s", b.id);
	snprintf(r.box, sizeof(r.box), "%s", b.id);
	r.command = text;
	b.created_ns = at_ns;
	if (store_begin(s, &err) < 0)
		return -1;
	if (store_box_insert(s, &b, &err) < 0 ||
	    store_box_bury(s, b.id, "deleted", at_ns + 1, &err) < 0 ||
	    store_run_begin(s, &r, &err) < 0 || store_run_end(s, &r, &err) < 0 ||
	    store_idem_begin(s, team, b.id, hash, at_ns, &i, &err) < 0 ||
	    store_idem_finish(s, team, b.id, 201, "application/json", "{}", 2, &err) < 0 ||
	    store_audit_add(s, &a, &err) < 0)
		return store_rollback(s);
	return store_commit(s, &err);
}

static int64_t history_count(struct store *s, const char *text)
{
	auto_sql struct sql q = sql(s, text);

	return sql_one(&q, "answer to", text, &err) < 0 ? -1 : sql_get_i64(&q);
}

static int history_sweep(struct store *s, struct store_history *h, unsigned *out_most)
{
	int rc = 1;

	*out_most = 0;
	while (rc > 0) {
		int before = sqlite3_total_changes(s->db), now;

		rc = store_history_step(s, h, &err);
		now = sqlite3_total_changes(s->db) - before;
		if (now > (int)*out_most)
			*out_most = (unsigned)now;
	}
	return rc;
}

TEST(retention_of_thirty_days_removes_older_runs_and_shrinks_the_file)
{
	uint64_t largest = 0, all, unused;
	char path[160];
	struct stat st;

	STORE(s, dir);
	for (unsigned day = 1; day <= 365; day++) {
		struct store_history h = { .now_ns = day * DAY_NS,
					   .keep_ns = 30 * DAY_NS,
					   .team_bytes = UINT64_C(1) << 30 };
		unsigned most;

		for (unsigned i = 0; i < 20; i++)
			CHECK_OK(history_add(s, i % 2 ? "default" : "blue", day * 20 + i,
					     day * DAY_NS - 1000 + i, 500));
		CHECK_OK(history_sweep(s, &h, &most));
		CHECK(most <= 300); /* rows in one step: the longest time that a request waits */
		CHECK_OK(store_history_pages(s, &all, &unused, &err));
		if (day > 60 && all > largest)
			largest = all;
		if (day == 60)
			largest = all;
	}
	CHECK_INT(history_count(s, "SELECT count(*) FROM runs"), 30 * 20);
	CHECK_INT(history_count(s, "SELECT count(*) FROM boxes"), 30 * 20);
	CHECK_INT(history_count(s, "SELECT count(*) FROM idempotency"), 20);
	CHECK_INT(history_count(s, "SELECT count(*) FROM audit WHERE action = 'box.create'"),
		  30 * 20);
	CHECK(history_count(s, "SELECT count(*) FROM audit") < 30 * 20 + 64);
	CHECK_INT(history_count(s, "SELECT min(ended_ns) FROM runs") >= 335 * DAY_NS - 1000, 1);
	/* It has stopped growing after two months, and no year is in it. */
	CHECK_OK(store_history_pages(s, &all, &unused, &err));
	CHECK(all < 1200);
	path_of(path, dir, "atoll.db");
	store_close(s);
	s = NULL;
	CHECK_INT(stat(path, &st), 0);
	CHECK(st.st_size < 1200 * 4096);
	CHECK_OK(store_open(&s, dir, &err));
	CHECK_OK(store_check(s, &err));
}

TEST(the_history_size_of_a_team_is_enforced_without_affecting_others)
{
	struct store_history h = { .now_ns = DAY_NS,
				   .keep_ns = 30 * DAY_NS,
				   .team_bytes = 20 * (TEXT + 600) };
	uint64_t all, unused, before;
	unsigned most;

	STORE(s, dir);
	for (unsigned i = 0; i < 200; i++)
		CHECK_OK(history_add(s, "default", i, 1000 + i, TEXT));
	CHECK_OK(history_add(s, "blue", 500, 1, 100));
	CHECK(store_history_added(s) > 200 * TEXT);
	CHECK_INT(store_history_added(s), 0);
	CHECK_OK(store_history_pages(s, &before, &unused, &err));
	CHECK_OK(history_sweep(s, &h, &most));
	CHECK(h.runs >= 179 && h.runs <= 181);
	CHECK_INT(h.boxes, 0); /* small ones: they fit */
	CHECK_INT(history_count(s, "SELECT count(*) FROM runs WHERE team = 'default'"),
		  200 - (int64_t)h.runs);
	CHECK_INT(history_count(s, "SELECT min(ended_ns) FROM runs WHERE team = 'default'"),
		  1001 + (int64_t)h.runs);
	CHECK_INT(history_count(s, "SELECT count(*) FROM runs WHERE team = 'blue'"), 1);
	CHECK_OK(store_history_pages(s, &all, &unused, &err));
	CHECK(before > 2000 && all < before / 3);
	CHECK_OK(store_check(s, &err));
}

TEST(without_retention_limits_nothing_is_removed)
{
	struct store_history h = { .now_ns = INT64_MAX };
	unsigned most;

	STORE(s, dir);
	CHECK_OK(history_add(s, "default", 1, INT64_MAX - 10, 100)); /* its key is not a day old */
	CHECK_OK(history_sweep(s, &h, &most));
	CHECK(!h.runs && !h.boxes && !h.keys && !h.audit_rows && !most);
}

TEST(the_wal_is_truncated_when_idle)
{
	char path[160];
	struct stat st = { 0 };

	STORE(s, dir);
	CHECK_OK(store_begin(s, &err));
	for (unsigned i = 0; i < 200; i++)
		CHECK_OK(history_add(s, "default", i, 1000 + i, TEXT));
	CHECK_OK(store_commit(s, &err));
	path_of(path, dir, "atoll.db-wal");
	CHECK(stat(path, &st) == 0 && st.st_size > 5 << 20);
	for (unsigned i = 0; i < 1500 && stat(path, &st) == 0 && st.st_size > 1 << 20; i++)
		usleep(10000); /* until the checkpoint thread has seen three quiet seconds */
	CHECK(st.st_size <= 1 << 20);
}

TEST(a_database_of_an_older_version_gets_auto_vacuum)
{
	STORE(s, dir);
	store_close(s);
	s = NULL;
	CHECK_INT(plain(dir, "PRAGMA auto_vacuum = NONE; VACUUM"), SQLITE_OK);
	CHECK_OK(store_open(&s, dir, &err));
	CHECK_INT(history_count(s, "PRAGMA auto_vacuum"), 2);
}

static int put_team(struct store *s, const char *name)
{
	struct store_team team = { 0 };
	struct err e;

	snprintf(team.name, sizeof(team.name), "%s", name);
	return store_team_put(s, &team, &e);
}

TEST(writes_join_an_open_group)
{
	struct err why = { .kind = ERR_INVALID };
	int began;

	STORE(s, dir);
	began = store_join(s, &err); /* there is none: it begins one */
	CHECK_INT(began, 1);
	CHECK_INT(put_team(s, "one"), 0);
	CHECK_OK(store_leave(s, began, 0, &err));
	CHECK_INT(history_count(s, "SELECT count(*) FROM teams WHERE name = 'one'"), 1);
	CHECK_OK(store_begin(s, &err));
	began = store_join(s, &err);
	CHECK_INT(began, 0);
	CHECK_INT(put_team(s, "two"), 0);
	CHECK_OK(store_leave(s, began, 0, &err));
	store_rollback(s); /* of both */
	CHECK_INT(history_count(s, "SELECT count(*) FROM teams WHERE name = 'two'"), 0);
	/* A group of which a part is missing cannot be committed. */
	CHECK_OK(store_begin(s, &err));
	CHECK_INT(put_team(s, "three"), 0);
	began = store_join(s, &err);
	store_doom(s, &why);
	CHECK(store_leave(s, began, 0, &err) < 0);
	CHECK(store_commit(s, &err) < 0);
	CHECK_INT(history_count(s, "SELECT count(*) FROM teams WHERE name = 'three'"), 0);
	store_doom(s, &why); /* without a group */
	CHECK_INT(put_team(s, "four"), 0);
}

/* The file cannot grow: its rewrite fails, is reported, and the store opens. */
TEST_FORKED(a_database_that_cannot_be_rewritten_is_used_as_it_is)
{
	struct rlimit small = { 65536, 65536 };
	char path[160], said[4096] = "";
	int log, before = dup(2);

	STORE(s, dir);
	store_close(s);
	s = NULL;
	CHECK_INT(plain(dir, "PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM;"
			     " PRAGMA journal_mode = WAL"),
		  SQLITE_OK);
	path_of(path, dir, "log");
	log = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	signal(SIGXFSZ, SIG_IGN);
	dup2(log, 2);
	setrlimit(RLIMIT_FSIZE, &small);
	CHECK_OK(store_open(&s, dir, &err));
	dup2(before, 2);
	CHECK_INT(history_count(s, "PRAGMA auto_vacuum"), 0);
	CHECK(pread(log, said, sizeof(said) - 1, 0) > 0);
	CHECK(strstr(said, "the database was not rewritten") != NULL);
}
