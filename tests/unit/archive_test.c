/* archive_test.c - the archive of a backup: what goes in comes out, and every cut and change is found. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "daemon/archive.h"
#include "store/backup.h"
#include "store_dir.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOLE = 8 << 20 };

static int temporary(void)
{
	char name[] = "/tmp/archive-XXXXXX";
	int fd = mkstemp(name);

	if (fd < 0)
		abort();
	unlink(name);
	return fd;
}

static int file_with(const void *bytes, size_t n)
{
	int fd = temporary();

	if (write(fd, bytes, n) != (ssize_t)n)
		abort();
	return fd;
}

/* Data, a hole, data, a hole. */
static int sparse_file(void)
{
	int fd = temporary();

	if (pwrite(fd, "begin", 5, 0) != 5 || pwrite(fd, "middle", 6, HOLE) != 6 ||
	    ftruncate(fd, 2 * HOLE) < 0)
		abort();
	return fd;
}

static int made_archive(void)
{
	auto_fd int text = file_with("hello\n", 6), none = file_with("", 0), sparse = sparse_file();
	struct archive_writer w = { .fd = temporary() };

	if (archive_add(&w, "server/a.txt", text, &err) < 0 ||
	    archive_add(&w, "empty", none, &err) < 0 ||
	    archive_add(&w, "volumes/v.img", sparse, &err) < 0 ||
	    archive_finish(&w, json_pack("{s:i}", "schema", 3), &err) < 0)
		abort();
	archive_writer_fini(&w);
	return w.fd;
}

static const char *refusal(int fd)
{
	json_t *manifest = NULL;

	if (archive_verify(fd, &manifest, &err) < 0)
		return err.msg;
	json_decref(manifest);
	return "accepted";
}

struct opened {
	int fds[8];
	char names[8][100];
	unsigned n;
};

static int open_member(void *ctx, const char *name, struct err *e)
{
	struct opened *o = ctx;
	int fd = temporary();

	(void)e;
	snprintf(o->names[o->n], sizeof(o->names[0]), "%s", name);
	o->fds[o->n++] = dup(fd);
	return fd;
}

TEST(files_come_out_as_they_went_in_with_their_holes)
{
	auto_fd int fd = made_archive();
	json_t *manifest = NULL;
	struct opened o = { 0 };
	struct stat st;
	char text[16];

	CHECK(lseek(fd, 0, SEEK_END) < 100000); /* the holes are not stored */
	CHECK_OK(archive_verify(fd, &manifest, &err));
	CHECK_INT(json_integer_value(json_object_get(manifest, "schema")), 3);
	CHECK_INT(json_array_size(json_object_get(manifest, "files")), 3);
	json_decref(manifest);
	CHECK_OK(archive_extract(fd, open_member, &o, &err));
	CHECK_INT(o.n, 3);
	CHECK_STR(o.names[0], "server/a.txt");
	CHECK_STR(o.names[2], "volumes/v.img");
	CHECK(pread(o.fds[0], text, sizeof(text), 0) == 6 && !memcmp(text, "hello\n", 6));
	CHECK(fstat(o.fds[1], &st) == 0 && st.st_size == 0);
	CHECK(fstat(o.fds[2], &st) == 0 && st.st_size == 2 * HOLE && st.st_blocks * 512 < HOLE);
	CHECK(pread(o.fds[2], text, 5, 0) == 5 && !memcmp(text, "begin", 5));
	CHECK(pread(o.fds[2], text, 6, HOLE) == 6 && !memcmp(text, "middle", 6));
	for (unsigned i = 0; i < o.n; i++)
		close(o.fds[i]);
}

TEST(tar_reads_the_archive)
{
	auto_fd int fd = made_archive();
	char command[200], out[200] = "";
	FILE *p;

	snprintf(
		command, sizeof(command),
		"tar -tf /proc/%d/fd/%d | tr '\\n' ' '; tar -xOf /proc/%d/fd/%d volumes/v.img | wc -c",
		(int)getpid(), fd, (int)getpid(), fd);
	p = popen(command, "r");
	CHECK(p && fgets(out, sizeof(out), p));
	pclose(p);
	CHECK_STR(out, "server/a.txt empty volumes/v.img manifest.json 16777216\n");
}

TEST(an_archive_that_was_cut_anywhere_is_rejected)
{
	auto_fd int fd = made_archive();
	off_t size = lseek(fd, 0, SEEK_END);

	CHECK_STR(refusal(fd), "accepted");
	for (off_t at = size - 1; at >= 0; at -= at > size - 1100 ? 97 : 331) {
		CHECK(ftruncate(fd, at) == 0);
		CHECK(strstr(refusal(fd), "cut") || strstr(refusal(fd), "no manifest"));
	}
}

TEST(every_changed_byte_of_content_or_headers_is_found)
{
	auto_fd int fd = made_archive();
	off_t size = lseek(fd, 0, SEEK_END);
	unsigned char was, now;

	for (off_t at = 0; at < size - 1024; at += 61) {
		CHECK(pread(fd, &was, 1, at) == 1);
		now = was ^ 0x41;
		CHECK(pwrite(fd, &now, 1, at) == 1);
		/* Padding between members, white space of the manifest and names of users mean nothing. */
		if (!strcmp(refusal(fd), "accepted"))
			CHECK(was == 0 || was == ' ' || was == '\n' || at > size - 4096);
		CHECK(pwrite(fd, &was, 1, at) == 1);
	}
	CHECK_STR(refusal(fd), "accepted");
}

TEST(names_that_lead_elsewhere_and_other_archives_are_rejected)
{
	static const char *const bad[] = { "",   "/etc/passwd", "../x", "a/../b", "a//b",
					   "a/", ".hidden",     "a b",  "a\nb",   "\xc3\xa9" };
	struct archive_writer w = { .fd = -1 };
	auto_fd int text = file_with("x", 1), other = file_with("not a tar at all", 16);
	char name[200];

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK(!archive_name_valid(bad[i]));
		CHECK_ERR(archive_add(&w, bad[i], text, &err), ERR_INVALID);
	}
	memset(name, 'a', sizeof(name));
	name[ARCHIVE_NAME + 1] = 0;
	CHECK(!archive_name_valid(name));
	CHECK(strstr(refusal(other), "cut"));
	CHECK(ftruncate(other, 4096) == 0);
	CHECK(strstr(refusal(other), "not a backup"));
}

TEST(a_full_disk_is_reported_and_a_file_that_shrinks_too)
{
	auto_fd int full = open("/dev/full", O_WRONLY | O_CLOEXEC), text = file_with("hello", 5);
	struct archive_writer w = { .fd = full };

	CHECK_ERR(archive_add(&w, "a", text, &err), ERR_SYS);
	CHECK_INT(err.sys, ENOSPC);
	CHECK(strstr(err.msg, "a: "));
	archive_writer_fini(&w);
}

TEST(a_database_is_copied_while_it_is_written_and_a_newer_schema_is_rejected)
{
	STORE(s, dir);
	struct store_box box = box_of(1);
	char copy[200], wrong[200];
	sqlite3 *db;
	int schema = 0;

	snprintf(copy, sizeof(copy), "%s/copy.db", dir);
	snprintf(wrong, sizeof(wrong), "%s/none/copy.db", dir);
	CHECK_OK(store_box_insert(s, &box, &err));
	CHECK_OK(store_begin(s, &err)); /* a writer with an open transaction */
	box = box_of(2);
	CHECK_OK(store_box_insert(s, &box, &err));
	CHECK_OK(store_backup(dir, copy, &schema, &err));
	CHECK_OK(store_commit(s, &err));
	CHECK_INT(schema, store_schema(s));
	CHECK_OK(store_examine(copy, &schema, &err));
	CHECK_INT(schema, store_schema(s));
	CHECK(sqlite3_open(copy, &db) == SQLITE_OK);
	CHECK(sqlite3_exec(db, "CREATE TABLE t AS SELECT id FROM boxes WHERE id <> 'aaaaaaaaaaab'",
			   NULL, NULL, NULL) == SQLITE_OK);
	CHECK_INT(sqlite3_changes(db), 0); /* without the row that was not committed */
	CHECK(sqlite3_exec(db, "PRAGMA user_version = 9999", NULL, NULL, NULL) == SQLITE_OK);
	sqlite3_close(db);
	CHECK_ERR(store_examine(copy, &schema, &err), ERR_INVALID);
	CHECK(strstr(err.msg, "newer version"));
	CHECK_ERR(store_backup(dir, wrong, &schema, &err), ERR_SYS);
	CHECK_ERR(store_examine(wrong, &schema, &err), ERR_SYS);
}
