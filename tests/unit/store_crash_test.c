/* store_crash_test.c - the store with killed processes, concurrent writers, and full disks. */
#include "base/clock.h"
#include "store/sql.h"
#include "store_dir.h"
#include "store/events.h"
#include "store/keys.h"
#include "store/teams.h"
#include "forked.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>

/* A box and its event, in one group. */
static int put_pair(struct store *s, unsigned n, struct err *e)
{
	struct store_event ev = { .at_ns = n, .team = "default", .type = "box.created" };
	struct store_box b = box_of(n);

	memcpy(ev.box, b.id, sizeof(ev.box));
	if (store_begin(s, e) < 0)
		return -1;
	if (store_box_insert(s, &b, e) < 0 || store_event_add(s, &ev, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

static int count(struct store *s, const char *query)
{
	struct err e;
	auto_sql struct sql q = sql(s, query);

	return sql_row(&q, &e) == 1 ? (int)sql_get_i64(&q) : -1;
}

/* Death ---- */

static void write_until_killed(const char *dir, int tell)
{
	struct store *s;
	struct err e;

	if (store_open(&s, dir, &e) < 0)
		_exit(1);
	for (unsigned n = (unsigned)count(s, "SELECT count(*) FROM boxes");; n++)
		if (put_pair(s, n, &e) < 0 || write(tell, &n, sizeof(n)) != sizeof(n))
			_exit(1);
}

/* Reads which rows the child has committed until there are `enough`, kills it, reads the rest. */
static int last_told(int from, pid_t child, unsigned enough)
{
	unsigned n;
	int last = -1, killed = 0;

	while (read(from, &n, sizeof(n)) == sizeof(n)) {
		last = (int)n;
		if (!killed && n >= enough) {
			kill(child, SIGKILL);
			killed = 1;
		}
	}
	return last;
}

TEST(committed_transactions_survive_kill_9_and_others_leave_nothing)
{
	auto_dir char dir[128];
	unsigned enough = 0;

	dir_make(dir);
	for (unsigned round = 0; round < 12; round++) {
		int pipes[2], status, last;
		pid_t child;

		CHECK_INT(pipe2(pipes, O_CLOEXEC), 0);
		child = fork();
		if (child == 0)
			write_until_killed(dir, pipes[1]);
		close(pipes[1]);
		enough += 1 + round * 37; /* somewhere else each time */
		last = last_told(pipes[0], child, enough);
		close(pipes[0]);
		CHECK_INT(waitpid(child, &status, 0), child);
		CHECK(WIFSIGNALED(status));
		CHECK(last >= (int)enough);

		auto_store struct store *s = NULL;
		CHECK_OK(store_open(&s, dir, &err));
		CHECK_OK(store_check(s, &err));
		CHECK(count(s, "SELECT count(*) FROM boxes") > last);
		CHECK_INT(count(s, "SELECT count(*) FROM boxes"),
			  count(s, "SELECT count(*) FROM events"));
		CHECK_INT(count(s, "SELECT count(*) FROM boxes WHERE id NOT IN"
				   " (SELECT box FROM events)"),
			  0);
		enough = (unsigned)count(s, "SELECT count(*) FROM boxes");
	}
}

/* Company ---- */

static int make_keys(const char *dir, int tell)
{
	char text[KEY_TEXT + 1];
	uint64_t slowest = 0;

	for (unsigned i = 0; i < 60; i++) {
		uint64_t began = now_ns();
		struct store_key k = { .team = TEAM_DEFAULT, .role = ROLE_OWNER };
		struct store *s;
		struct err e;

		/* As `atoll key new` does: open, add, close. */
		if (store_open(&s, dir, &e) < 0 || store_key_make(text, &k, &e) < 0 ||
		    store_key_add(s, &k, &e) < 0) {
			printf("# %s\n", e.msg);
			return 1;
		}
		store_close(s);
		if (now_ns() - began > slowest)
			slowest = now_ns() - began;
		if (write(tell, k.hash, sizeof(k.hash)) != sizeof(k.hash))
			return 1;
	}
	printf("# the slowest of 60 keys beside a writer without pauses: %u ms\n",
	       (unsigned)(slowest / 1000000));
	return 0;
}

TEST(writes_of_another_process_are_visible_at_once)
{
	auto_dir char dir[128];
	auto_store struct store *s = NULL;
	unsigned keys = 0, n = 0;
	uint8_t hash[SHA256_BYTES];
	int pipes[2], status;
	pid_t child;

	dir_make(dir);
	CHECK_INT(pipe2(pipes, O_CLOEXEC), 0);
	child = fork(); /* before this process opens it: SQLite's locks do not survive a fork */
	if (child == 0)
		_exit(make_keys(dir, pipes[1]));
	close(pipes[1]);
	fcntl(pipes[0], F_SETFL, O_NONBLOCK);
	CHECK_OK(store_open(&s, dir, &err));
	for (;;) {
		struct store_key k;
		ssize_t got = read(pipes[0], hash, sizeof(hash));

		if (got == 0)
			break;
		if (got == sizeof(hash)) {
			CHECK_OK(store_key_find(s, hash, &k, &err));
			keys++;
		}
		CHECK_OK(put_pair(s, n++, &err));
	}
	close(pipes[0]);
	waitpid(child, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK_INT(keys, 60);
	CHECK_OK(store_check(s, &err));
}

static int open_and_write(const char *dir, unsigned who)
{
	struct store *s;
	struct err e;

	if (store_open(&s, dir, &e) < 0) {
		printf("# %s\n", e.msg);
		return 1;
	}
	for (unsigned i = 0; i < 20; i++)
		if (put_pair(s, who * 1000 + i, &e) < 0) {
			printf("# %s\n", e.msg);
			return 1;
		}
	store_close(s);
	return 0;
}

TEST(many_processes_create_the_database_at_the_same_time)
{
	for (unsigned round = 0; round < 25; round++) {
		auto_dir char dir[128];
		auto_store struct store *s = NULL;
		int status, bad = 0;
		pid_t child[6];

		dir_make(dir);
		for (unsigned i = 0; i < ARRAY_LEN(child); i++)
			if ((child[i] = fork()) == 0)
				_exit(open_and_write(dir, i));
		for (unsigned i = 0; i < ARRAY_LEN(child); i++) {
			waitpid(child[i], &status, 0);
			bad += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
		}
		CHECK_INT(bad, 0);
		CHECK_OK(store_open(&s, dir, &err));
		CHECK_INT(count(s, "SELECT count(*) FROM boxes"), 120);
	}
}

/* A child that opens the database of dir, runs `lock` in it, and keeps the lock for hold_ms. */
static pid_t lock_holder_start(const char *dir, const char *lock, unsigned hold_ms)
{
	int pipes[2];
	pid_t child;
	char ready;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		sqlite3 *db;
		char path[160];

		snprintf(path, sizeof(path), "%s/atoll.db", dir);
		if (sqlite3_open(path, &db) != SQLITE_OK ||
		    sqlite3_exec(db, lock, NULL, NULL, NULL) != SQLITE_OK ||
		    write(pipes[1], "y", 1) != 1)
			_exit(1);
		usleep(hold_ms * 1000);
		_exit(0);
	}
	close(pipes[1]);
	if (read(pipes[0], &ready, 1) != 1)
		child = -1;
	close(pipes[0]);
	return child;
}

static void lock_holder_end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Longer than a write waits: a machine whose processors are stolen holds a lock for seconds. */
TEST(opening_waits_for_a_process_that_locks_the_file_for_six_seconds)
{
	auto_dir char dir[128];
	auto_store struct store *s = NULL;
	pid_t holder;

	dir_make(dir);
	holder = lock_holder_start(dir, "BEGIN EXCLUSIVE", 6000);
	CHECK(holder > 0);
	CHECK_OK(store_open(&s, dir, &err));
	lock_holder_end(holder);
	CHECK_OK(put_pair(s, 1, &err));
}

/* A reader of a file that has no WAL yet: SQLite does not wait for it when WAL is turned on. */
TEST(a_permanent_reader_delays_opening_only_until_the_deadline)
{
	auto_dir char dir[128];
	auto_store struct store *s = NULL;
	uint64_t began;
	pid_t holder;

	dir_make(dir);
	holder = lock_holder_start(
		dir, "PRAGMA user_version = 0; BEGIN; SELECT count(*) FROM sqlite_schema", 60000);
	CHECK(holder > 0);
	began = now_ns();
	CHECK_ERR(store_open_within(&s, dir, 300, &err), ERR_SYS);
	CHECK_INT(err.sys, EBUSY);
	CHECK(now_ns() - began < UINT64_C(4000000000));
	lock_holder_end(holder);
	CHECK_OK(store_open(&s, dir, &err));
}

TEST(the_connection_that_checkpoints_waits_for_a_lock_as_well)
{
	auto_dir char dir[128];
	struct wal_copier c = { 0 };
	char path[160];
	sqlite3 *db;
	pid_t holder;

	dir_make(dir);
	snprintf(path, sizeof(path), "%s/atoll.db", dir);
	holder = lock_holder_start(dir, "BEGIN EXCLUSIVE", 300);
	CHECK(holder > 0);
	CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
	CHECK_OK(wal_copier_start(&c, db, path, 5000, &err));
	wal_copier_stop(&c);
	sqlite3_close(db);
	lock_holder_end(holder);
}

TEST(an_endless_writer_is_reported_as_busy)
{
	auto_store struct store *other = NULL;

	STORE(s, dir);
	CHECK_OK(store_open(&other, dir, &err));
	CHECK_OK(store_begin(other, &err));
	sqlite3_busy_timeout(s->db, 20);
	CHECK_ERR(put_pair(s, 1, &err), ERR_SYS);
	CHECK_INT(err.sys, EBUSY);
	CHECK_INT(count(s, "SELECT count(*) FROM boxes"), 0);
	store_rollback(other);
	CHECK_OK(put_pair(s, 1, &err));
}

/* The disk ---- */

/* Fills the disk below s; 0: the store reported it correctly. */
static int fill(struct store *s, unsigned *n)
{
	for (; *n < 1000000; (*n)++)
		if (put_pair(s, *n, &err) < 0)
			return err.kind == ERR_SYS && err.sys == ENOSPC ? 0 : -1;
	return -1;
}

/* In a group: after the first failure all later calls of the group fail. */
static void check_doom(struct store *s, unsigned n)
{
	struct store_box b = box_of(n);
	int before = count(s, "SELECT count(*) FROM boxes");
	char *big = malloc(400001);

	memset(big, ' ', 400000);
	memcpy(big, "{}", 2);
	big[400000] = 0;
	CHECK_OK(store_begin(s, &err));
	b.metadata = big;
	for (unsigned i = 0; i < 100 && store_box_insert(s, &b, &err) == 0; i++)
		snprintf(b.id, sizeof(b.id), "%s", id_of(++n));
	b.metadata = NULL;
	snprintf(b.id, sizeof(b.id), "zzzzzzzzzzzz");
	CHECK_ERR(store_box_insert(s, &b, &err), ERR_SYS);
	CHECK_INT(err.sys, ENOSPC);
	CHECK_ERR(store_begin(s, &err), ERR_SYS);
	CHECK_ERR(store_commit(s, &err), ERR_SYS);
	CHECK_INT(err.sys, ENOSPC);
	CHECK_INT(count(s, "SELECT count(*) FROM boxes"), before);
	free(big);
}

static void check_full(struct store *s)
{
	struct store_box b;
	unsigned n = 0;

	CHECK_INT(fill(s, &n), 0);
	CHECK(n > 10);
	CHECK_INT(count(s, "SELECT count(*) FROM boxes"), n);
	CHECK_INT(count(s, "SELECT count(*) FROM events"), n);
	CHECK_OK(store_box_get(s, id_of(n - 1), &b, &err)); /* reading still works */
	store_box_fini(&b);
	check_doom(s, n);
}

TEST(a_file_that_cannot_grow_rolls_back_and_recovers)
{
	STORE(s, dir);
	(void)count(s, "PRAGMA max_page_count = 120");
	check_full(s);
	if (tap_now != TAP_OK)
		return;
	(void)count(s, "PRAGMA max_page_count = 1000000");
	CHECK_OK(put_pair(s, 900000, &err));
	CHECK_OK(store_check(s, &err));
}

TEST_FORKED(a_full_disk_rolls_back_and_the_store_recovers)
{
	auto_dir char dir[128];
	auto_store struct store *s = NULL;
	char ballast[160];
	int fd;

	dir_make(dir);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", dir, "tmpfs", 0, "size=3200k") < 0)
		SKIP("needs root, for a mount of its own");
	snprintf(ballast, sizeof(ballast), "%s/ballast", dir);
	fd = open(ballast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && posix_fallocate(fd, 0, 1 << 20) == 0);
	CHECK_OK(store_open(&s, dir, &err));
	check_full(s);
	if (tap_now != TAP_OK)
		return;
	CHECK_INT(unlink(ballast), 0);
	close(fd);
	CHECK_OK(put_pair(s, 900000, &err));
	CHECK_OK(store_check(s, &err));
	store_close(s);
	s = NULL;
	CHECK_OK(store_open(&s, dir, &err));
	CHECK_OK(store_check(s, &err));
	store_close(s);
	s = NULL;
	umount2(dir, MNT_DETACH);
}

/* The WAL ---- */

static off_t size_of(const char *dir, const char *name)
{
	char path[160];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return stat(path, &st) < 0 ? 0 : st.st_size;
}

/* Without a pause, so a passive checkpoint alone would never let the WAL start again at its
 * beginning. */
TEST(the_wal_stays_bounded_during_writes)
{
	struct store_box b = box_of(1);
	static char data[40000];
	off_t most = 0, written = 0;

	STORE(s, dir);
	memset(data, ' ', sizeof(data) - 1);
	memcpy(data, "{}", 2);
	b.metadata = data;
	CHECK_OK(store_box_insert(s, &b, &err));
	for (unsigned i = 0; i < 15000 && (written < 64 << 20 || written < most * 3); i++) {
		off_t wal = size_of(dir, "atoll.db-wal");

		CHECK_OK(store_box_update(s, &b, &err));
		most = wal > most ? wal : most;
		written += (off_t)sizeof(data);
	}
	printf("# %lld KiB went through a WAL of %lld KiB\n", (long long)written >> 10,
	       (long long)most >> 10);
	CHECK(written >= most * 3);
	CHECK_OK(store_check(s, &err));
}

TEST(the_wal_is_checkpointed_without_a_request)
{
	struct store_event ev = { .team = "default", .type = "noise" };
	static char data[40000];
	off_t begin, now;

	STORE(s, dir);
	memset(data, ' ', sizeof(data) - 1);
	ev.data = data;
	begin = now = size_of(dir, "atoll.db");
	/* Only a checkpoint writes to the file, and this test requests none. */
	for (unsigned i = 0; i < 15000 && now < begin + (4 << 20); i++) {
		CHECK_OK(store_event_add(s, &ev, &err));
		now = size_of(dir, "atoll.db");
	}
	CHECK(now >= begin + (4 << 20));
}
